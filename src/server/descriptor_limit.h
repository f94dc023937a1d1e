// How many descriptors, and so how many connections, this process may have.
#pragma once

namespace lockd {

// Raises the soft limit to the hard one. The soft one, often 1,024, is kept low for the sake of
// programs that use select(), which this is not. Once, before there are threads.
void raise_descriptor_limit();

}  // namespace lockd

// Boost.JSON itself: Debian's package of it is headers, to be compiled by whoever uses them.
#include <boost/json/src.hpp>

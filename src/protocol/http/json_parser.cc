// Boost.JSON itself: Debian's package has only headers, which the program compiles.
#include <boost/json/src.hpp>

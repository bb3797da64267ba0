#include "../../src/http/no_proxy.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

struct Case {
  const char* list;
  const char* host;
  bool is_without;
};

TEST(NoProxy, HasNamesAddressesAndNetworks) {
  for (const auto& [list, host, is_without] : {
           Case{"", "a.example.com", false},
           Case{"*", "a.example.com", true},
           Case{"x,*", "a.example.com", true},
           Case{"a.example.com", "a.example.com", true},
           Case{"example.com", "a.example.com", true},
           Case{".example.com", "a.example.com", true},
           Case{".example.com", "example.com", true},
           Case{"Example.COM", "a.eXample.com", true},
           Case{"example.com.", "a.example.com", true},
           Case{"example.com", "a.example.com.", true},
           Case{" x , example.com ", "a.example.com", true},
           Case{"x example.com", "a.example.com", true},
           Case{"x\texample.com", "a.example.com", true},
           Case{"xample.com", "a.example.com", false},
           Case{"b.example.com", "a.example.com", false},
           Case{",,", "a.example.com", false},
           Case{".", "a.example.com", false},
           Case{"localhost", "localhost", true},
           Case{"127.0.0.1", "127.0.0.1", true},
           Case{"127.0.0.1", "127.0.0.11", false},
           Case{"0.0.1", "127.0.0.1", false},
           Case{"10.0.0.0/8", "10.1.2.3", true},
           Case{"10.0.0.0/8", "11.1.2.3", false},
           Case{"192.168.128.0/17", "192.168.200.1", true},
           Case{"192.168.128.0/17", "192.168.100.1", false},
           Case{"10.1.2.3/32", "10.1.2.3", true},
           Case{"10.1.2.3/33", "10.1.2.3", false},
           Case{"0.0.0.0/0", "10.1.2.3", true},
           Case{"10.0.0.0/", "10.0.0.0", false},
           Case{"10.0.0/8", "10.0.0.0", false},
           Case{"10.0.0.0/8", "10.example.com", false},
           Case{"::1", "[::1]", true},
           Case{"[::1]", "[::1]", true},
           Case{"0:0:0:0:0:0:0:1", "[::1]", true},
           Case{"::1", "[::2]", false},
           Case{"fe80::/10", "[FE80::1:2]", true},
           Case{"fe80::/10", "[fec0::1]", false},
           Case{"2001:db8::/32", "[2001:db8:1::5]", true},
           Case{"::ffff:10.0.0.1", "[::ffff:a00:1]", true},
           Case{"1:2:3:4:5:6:7:8::", "[1:2:3:4:5:6:7:8]", false},
           Case{"fe80::/10", "10.0.0.1", false},
       })
    EXPECT_EQ(IsWithoutProxy(list, host), is_without) << list << " and " << host;
}

}  // namespace
}  // namespace strobe::internal

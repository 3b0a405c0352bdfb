#ifndef NPUC_TESTS_BENCH_BARE_SERVER_H_
#define NPUC_TESTS_BENCH_BARE_SERVER_H_

#include <string>

namespace npuc::bench {

// The yardstick: a gRPC server (callback API) that does with RocksDB what npucd cannot do without,
// and nothing else. CreateCompileJob: one Get of the result where no_cache is false, then one
// synced Put of the request, answered with the stored job. GetCompileJob: one Get. Serves until
// standard input ends; `port_file` gets "grpc=HOST:PORT". Returns the exit code.
int RunBareServer(const std::string& data_dir, const std::string& port_file);

}  // namespace npuc::bench

#endif  // NPUC_TESTS_BENCH_BARE_SERVER_H_

#!/bin/bash
# Packages: cmake ninja-build g++ ccache. Needs: cmake ninja g++ ccache. Options: --save-dirs=tree:cache
# Compilers write files anew that a crash and a restart leave newer than the build's log has them.
mkdir -p tree cache temp
export TMPDIR=$PWD/temp
export HOME=$PWD CCACHE_DIR=$PWD/cache
unset CCACHE_NOHASHDIR CCACHE_BASEDIR
mkdir src
for ((n = 0; n < 6; n++)); do
	printf '#include <map>\n#include <string>\nint f%d(int x) { std::map<int, std::string> m; while (x--) m[x] = std::to_string(x * %d); int s = 0; for (auto &p : m) s += p.second.size(); return s; }\n' $n $n >src/f$n.cpp
done
printf '#include <cstdio>\n%s\nint main() { printf("%%d\\n", %s); }\n' \
	"$(for ((n = 0; n < 6; n++)); do echo "int f$n(int);"; done)" "$(echo 'f'{0..5}'(100) +' | sed 's/+$//')" >src/main.cpp
printf 'cmake_minimum_required(VERSION 3.10)\nproject(p CXX)\nfile(GLOB s *.cpp)\nadd_executable(p ${s})\n' >src/CMakeLists.txt
echo ready
cmake -S src -B tree -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >/dev/null
echo "status $?"
cmake --build tree -j 3 >build.log || cat build.log
echo "status $?"
tree/p
ninja -C tree -t clean >/dev/null
ninja -C tree -j 2 >build.log || cat build.log
echo "status $?"
tree/p

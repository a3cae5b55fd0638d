#!/bin/sh
# In a Debian root older than Python 3.11: OpenSSL and CPython from a newer Debian's sources, into /opt/coder.
# Run by roots.py; with the word quick, Python is compiled once, without a profile. Link-time optimisation is left out of
# either: it compiles everything several times more, which made this step an hour on two cores. Of Debian's patches those after its own packaging are taken: defects and security.
set -eu
suite=bookworm
optimised=--enable-optimizations
[ "${1:-}" != quick ] || optimised=
mkdir -p /src
cd /src
echo "deb-src ${CODER_DEBIAN_MIRROR:-http://deb.debian.org/debian} $suite main" >/etc/apt/sources.list.d/python-source.list
apt-get update -qq
apt-get source --download-only -qq python3.11/$suite openssl/$suite

# What an earlier run left half done would be patched twice.
rm -rf openssl python patches
mkdir -p openssl python patches
tar -C openssl --strip-components=1 -xf openssl_*.orig.tar.gz
[ -e /opt/coder/lib/libcrypto.so ] || (
	cd openssl
	./config --prefix=/opt/coder --libdir=lib --openssldir=/etc/ssl shared no-tests no-engine no-legacy
	make -s -j"$(nproc)" build_libs
	make -s install_dev
) >openssl.log 2>&1

tar -C python --strip-components=1 -xf python3.11_*.orig.tar.gz
tar -C patches -xf python3.11_*.debian.tar.xz
(
	cd python
	sed -n '/^shutdown-deadlock/,$p' ../patches/debian/patches/series | while read -r patch; do
		patch -p1 -s -f <"../patches/debian/patches/$patch" || echo "not applied: $patch"
	done
	# A patch makes this module include headers of the interpreter's core; Debian compiles it as part of that.
	sed -i "s/Extension('pyexpat', /&extra_compile_args=['-DPy_BUILD_CORE_MODULE'], /" setup.py
	./configure -q --prefix=/opt/coder --enable-shared --with-openssl=/opt/coder --with-system-expat --with-ensurepip=install \
		$optimised --disable-test-modules CFLAGS=-fno-semantic-interposition \
		LDFLAGS="-fno-semantic-interposition -Wl,-rpath,/opt/coder/lib"
	make -s -j"$(nproc)" PROFILE_TASK="-m test --pgo test_json test_struct test_bytes test_re test_dict test_generators test_collections test_int test_hashlib"
	make -s install
) >python.log 2>&1
# Modules whose library it did not find are left out without an error.
/opt/coder/bin/python3.11 -c "import _bz2, _ctypes, _lzma, _sqlite3, _ssl, pyexpat, zlib"

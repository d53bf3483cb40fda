# The Debian package, for `cpack --config`; tools/make_deb.sh stages its files and sets the variables of the environment.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME normlab)
set(CPACK_PACKAGE_VERSION $ENV{NORMLAB_VERSION})
set(CPACK_PACKAGE_FILE_NAME normlab)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "train, compare and inspect transformers with normalised attention")
set(CPACK_PACKAGE_DESCRIPTION
    "A program and a C library, built on libtorch (CPU), for small transformers with
QKNorm, Lp-QKNorm, nGPT, anGPT and others: training, studies with confidence
intervals, inspection, generation and translation.")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "normlab <normlab@localhost>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-pip")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_INSTALLED_DIRECTORIES "$ENV{NORMLAB_STAGE}" "/")
set(CPACK_PACKAGE_DIRECTORY $ENV{NORMLAB_OUT})
set(CPACK_SET_DESTDIR OFF)
set(CPACK_PACKAGING_INSTALL_PREFIX "/")
# Dependencies are those of the programs and of the libraries beside them, which are in no package.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "$ENV{NORMLAB_STAGE}/usr/lib/normlab")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)

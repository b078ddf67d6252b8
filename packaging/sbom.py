"""The bill of materials of a release, in SPDX's JSON: sbom.py TREE ARCHIVE OUT.

The library carries nothing of others, and takes libc alone.  What the tools, the models and the crates take is named
with its version, as the lock files have it."""

import hashlib
import os
import re
import sys
from datetime import datetime, timezone
from pathlib import Path

from spdx_tools.common.spdx_licensing import spdx_licensing
from spdx_tools.spdx.model import (
    Actor,
    ActorType,
    Checksum,
    ChecksumAlgorithm,
    CreationInfo,
    Document,
    ExternalPackageRef,
    ExternalPackageRefCategory,
    File,
    FileType,
    Package,
    PackageVerificationCode,
    Relationship,
    RelationshipType,
    SpdxNoAssertion,
)
from spdx_tools.spdx.writer.write_anything import write_file

OF_DEBIAN = ("libcli11-dev", "libzstd-dev", "librandom123-dev", "mpi-default-dev", "nlohmann-json3-dev",
             "systemtap-sdt-dev")


def digest(algorithm, content):
    return getattr(hashlib, algorithm)(content).hexdigest()


def library_files(tree):
    """The library's sources."""
    for path in sorted([*tree.glob("src/**/*"), *tree.glob("include/hmalloc/*")]):
        if path.is_file() and path.suffix in (".cc", ".h", ".hpp"):
            name, content = path.relative_to(tree).as_posix(), path.read_bytes()
            yield File(f"./{name}", "SPDXRef-File-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
                       [Checksum(ChecksumAlgorithm.SHA1, digest("sha1", content)),
                        Checksum(ChecksumAlgorithm.SHA256, digest("sha256", content))],
                       [FileType.SOURCE], license_concluded=spdx_licensing.parse("MIT"))


def others(tree):
    """(Name, version, kind of package URL) of what is taken from registries."""
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", (tree / "lab/requirements.lock").read_text(), re.MULTILINE):
        yield name, version, "pypi"
    crates = tree / "packaging/rust/Cargo.lock"
    for name, version, rest in re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"\n(.*)', crates.read_text()):
        if rest.startswith("source"):
            yield name, version, "cargo"
    for path in (tree / "lab/hmalloc_lab/page").glob("plotly.js-*.tgz"):  # the one that the archive contains
        yield "plotly.js-basic-dist-min", re.search(r"([\d.]+)\.tgz$", path.name)[1], "npm"
    for name in OF_DEBIAN:
        yield name, None, "deb/debian"


def package(name, version, kind):
    url = f"pkg:{kind}/{name}" + (f"@{version}" if version else "")
    identity = "SPDXRef-" + re.sub("[^A-Za-z0-9.-]", "-", "-".join(filter(None, (kind, name, version))))
    return Package(identity, name, SpdxNoAssertion(), version=version, files_analyzed=False,
                   external_references=[ExternalPackageRef(ExternalPackageRefCategory.PACKAGE_MANAGER, "purl", url)])


def main():
    tree, archive, out = map(Path, sys.argv[1:])
    version = re.search(r"project\(hmalloc VERSION ([\d.]+)", (tree / "CMakeLists.txt").read_text())[1]
    files = list(library_files(tree))
    sums = sorted(file.checksums[0].value for file in files)  # SHA-1, as the code that verifies a package has it
    sha256 = digest("sha256", archive.read_bytes())
    library = Package("SPDXRef-hmalloc", "hmalloc", SpdxNoAssertion(), version=version, file_name=archive.name,
                      verification_code=PackageVerificationCode(digest("sha1", "".join(sums).encode())),
                      checksums=[Checksum(ChecksumAlgorithm.SHA256, sha256)], license_declared=spdx_licensing.parse("MIT"),
                      license_concluded=spdx_licensing.parse("MIT"), copyright_text=SpdxNoAssertion())
    taken = [package(*other) for other in others(tree)]
    made = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc).replace(tzinfo=None)
    document = Document(
        CreationInfo("SPDX-2.3", "SPDXRef-DOCUMENT", f"hmalloc-{version}", f"https://spdx.org/spdxdocs/hmalloc-{version}-{sha256}",
                     [Actor(ActorType.TOOL, "packaging/sbom.py")], made),
        packages=[library, *taken], files=files,
        relationships=[
            Relationship("SPDXRef-DOCUMENT", RelationshipType.DESCRIBES, "SPDXRef-hmalloc"),
            *(Relationship("SPDXRef-hmalloc", RelationshipType.CONTAINS, file.spdx_id) for file in files),
            *(Relationship(other.spdx_id, RelationshipType.OPTIONAL_DEPENDENCY_OF, "SPDXRef-hmalloc") for other in taken)])
    write_file(document, str(out), validate=True)


if __name__ == "__main__":
    main()

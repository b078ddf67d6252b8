"""What MkDocs does not know: README and other pages that lie outside of docs/, sources that pages refer to, and a reference
that is made of the header."""

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "src/README.md", "tests/litmus/README.md")
HEADERS = ("include/hmalloc/hmalloc_local.h", "include/hmalloc/hmalloc.hpp")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
NAMED_FENCE = re.compile(r"^(```\w+) ([\w.]+)$", re.MULTILINE)
LANGUAGES = {".cc": "cpp", ".h": "cpp", ".hpp": "cpp", ".c": "c", ".py": "python"}


def on_files(files, config):
    """Pages: those of docs/ under their own names, README.md as the first, others under repository/ and source/."""
    index = files.get_file_from_path("README.md")
    files.remove(index)
    sources = {"index.md": "README.md", "documentation.md": "docs/README.md"}
    sources |= {f"repository/{name}": name for name in OUTSIDE}
    place = {f"docs/{file.src_uri}": file.src_uri for file in files if (ROOT / "docs" / file.src_uri).exists()}
    for page, source in sources.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
        place[source] = page
    config.place, config.whence = place, {page: source for source, page in place.items()}
    for name in HEADERS:
        _add_source(name, files, config)
    for page, source in list(config.whence.items()):
        if page.endswith(".md") and (ROOT / source).suffix == ".md":
            for target, _ in LINK.findall((ROOT / source).read_text(encoding="utf-8")):
                _add_source(_resolve(source, target), files, config)
    header = (ROOT / "include/hmalloc/hmalloc.h").read_text(encoding="utf-8")
    files.append(File.generated(config, "reference/c.md", content=_reference(header)))
    return files


def on_page_markdown(markdown, page, config, files):
    source = config.whence.get(page.file.src_uri)
    if source is None:
        return markdown

    def moved(link):
        target = config.place.get(_resolve(source, link[1]))
        if target is None:
            return link[0]  # MkDocs tells of it
        here = PurePosixPath(page.file.src_uri).parent
        return os.path.relpath(target, here).replace(os.sep, "/") + (link[2] or "")

    return LINK.sub(moved, NAMED_FENCE.sub(r'\1 title="\2"', markdown))


def _resolve(source, target):
    return os.path.normpath(PurePosixPath(source).parent / target).replace(os.sep, "/")


def _add_source(name, files, config):
    """A page with the text of a file, or with the names in a folder, that some page refers to."""
    path = ROOT / name
    if name in config.place or name.startswith("..") or not path.exists():
        return
    page = f"source/{name}.md"
    if path.is_dir():
        text = "\n".join(f"- `{each.name}{'/' if each.is_dir() else ''}`" for each in sorted(path.iterdir()))
    else:
        text = f"~~~~~~ {LANGUAGES.get(path.suffix, 'text')}\n{path.read_text(encoding='utf-8')}\n~~~~~~"
    content = f"---\nsearch: {{exclude: true}}\n---\n# {name}\n\n{text}\n"
    files.append(File.generated(config, page, content=content, inclusion=InclusionLevel.INCLUDED))
    config.place[name] = page


# ---- The reference. ----

DECLARATION = re.compile(r"(?:/\*(?P<comment>(?:(?!\*/).)*)\*/\n)?"
                         r"(?P<code>(?:struct \w+;\n)?(?:HM_API.*?|(?:struct \w+|enum) \{.*?\});)\n", re.DOTALL)
SECTION = re.compile(r"/\* -+ (.*?) -+ \*/")


def _text(comment):
    lines = [line.strip().removeprefix("*").strip() for line in comment.strip().splitlines()]
    return re.sub(r"(?<![`\w])(hm_\w+|HMALLOC_\w+=?\w*|malloc_trim|NULL)\b", r"`\1`", " ".join(lines))


def _reference(header):
    """The functions of hmalloc.h, each with its comment, in the sections of the header, down to what is implementation."""
    first = header[: header.index("#ifndef")]
    intro = re.sub(r"^\s*/?\*+/? ?", "", first, flags=re.MULTILINE)
    title, _, table = intro.partition("\nUnits")
    rows = re.sub(r"\n {2,}", " ", "Units" + table.rstrip("/ \n*"))
    parts = ["# hmalloc.h", title.replace("hmalloc: a", "A", 1).strip(), "| | |\n|---|---|"]
    parts[-1] += "".join(f"\n| {word} | {rest.strip()} |" for word, rest in re.findall(r"^(\w+) +(.*)$", rows, re.MULTILINE))
    sections = SECTION.split(header[: header.index("/* ---- The inline fast paths")])
    for heading, body in zip(["General.", *sections[1::2]], sections[0::2], strict=True):
        found = list(DECLARATION.finditer(body.partition("#define HM_ALLOC")[2] or body))
        if found:
            parts.append(f"## {heading.rstrip('.')}")
        for each in found:
            code = re.sub(r"HM_API |HM_NOEXCEPT ?|HM_ALLOC\([^)]*\)|__attribute__\(\(.*?\)\)(?=;)", "", each["code"])
            name = re.search(r"hm_\w+(?=\()", code) or re.search(r"struct hm_\w+|HM_[A-Z]+", code)
            parts.append(f"### {name[0]}\n\n~~~ c\n{re.sub(' +;', ';', code)}\n~~~")
            if each["comment"]:
                parts.append(_text(each["comment"]))
    return "\n\n".join(parts) + "\n"

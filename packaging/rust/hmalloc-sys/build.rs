//! Compiles the allocator's sources (`vendor`: in the repository, links to them) into an archive that takes only libc.
use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

// The variants' sources are all of them but these; `malloc` and `operator new` stay the process's own.
const NEVER: &[&str] = &["override/malloc.cc", "override/new_delete.cc"];
const HARDENED: &[&str] = &["api/hardened.cc", "large/guarded.cc", "pages/slice_guards.cc"];
const NOT_HARDENED: &[&str] = &["large/huge.cc", "large/huge_store.cc", "large/extent_cache.cc"];

// HM_SUBSET of CMakeLists.txt: what keeps the C++ runtime out.
const FLAGS: &[&str] = &[
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-ftls-model=initial-exec",
    "-fvisibility=hidden",
    "-fno-builtin-malloc",
    "-fno-plt",
    "-fno-semantic-interposition",
    "-fasynchronous-unwind-tables",
    "-falign-functions=64",
];

fn sources(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().map_or(false, |ending| ending == "cc") {
            found.push(path);
        }
    }
    found.sort(); // the same archive from any file system
    Ok(found)
}

fn fail(why: impl std::fmt::Display) -> ! {
    eprintln!("hmalloc-sys: {why}");
    process::exit(1)
}

fn main() {
    println!("cargo:rerun-if-changed=vendor/src");
    println!("cargo:rerun-if-changed=vendor/include");
    let target = |key: &str| env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    if target("OS") != "linux" || !["x86_64", "aarch64"].contains(&target("ARCH").as_str()) {
        return; // src/lib.rs says so
    }
    let enabled = |feature| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let others = if enabled("HARDENED") { NOT_HARDENED } else { HARDENED };
    let mut all = sources(Path::new("vendor/src"))
        .unwrap_or_else(|error| fail(format_args!("vendor/src: {error}: a checkout without symbolic links?")));
    all.retain(|path| !NEVER.iter().chain(others).any(|other| path.ends_with(other)));

    let mut build = cc::Build::new();
    build.cpp(true).cpp_link_stdlib(None).std("gnu++20").warnings(false);
    build.opt_level(2); // in a debug build, too: this is no code that its user debugs
    build.include("vendor/src").include("vendor/include").files(&all);
    for flag in FLAGS {
        build.flag(flag);
    }
    if enabled("HARDENED") {
        build.define("HM_HARDENED", None);
    } else if enabled("CHECKED") {
        build.define("HM_CHECKED", None);
    }
    if let Err(error) = build.try_compile("hmalloc") {
        fail(format_args!("no C++20 compiler (Debian: g++), or it failed: {error}"));
    }
}

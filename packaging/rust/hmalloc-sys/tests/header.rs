//! What src/lib.rs declares is what the header declares: nothing else, nothing less, in the same order.
use std::ffi::CStr;
use std::fs;

/// `const void* block` as `block: *const c_void`.
fn declaration(parameter: &str) -> String {
    let (of, name) = parameter.trim().rsplit_once(' ').expect(parameter);
    format!("{name}: {}", rust(of))
}

fn rust(of: &str) -> String {
    if let Some(pointee) = of.strip_suffix('*') {
        return match pointee.strip_prefix("const ") {
            Some(pointee) => format!("*const {}", rust(pointee)),
            None => format!("*mut {}", rust(pointee)),
        };
    }
    match of {
        "void" => "c_void",
        "char" => "c_char",
        "int" => "c_int",
        "size_t" => "usize",
        "uint64_t" => "u64",
        "uint32_t" => "u32",
        named => named.strip_prefix("struct ").expect("a type that this test knows"),
    }
    .into()
}

/// `HM_API int hm_collect(void) HM_NOEXCEPT;` as `pub fn hm_collect() -> c_int;`. Names that end in _ are no API.
fn function(line: &str) -> Option<String> {
    let (before, after) = line.strip_prefix("HM_API ")?.split_once('(')?;
    let (result, name) = before.rsplit_once(' ')?;
    if name.ends_with('_') {
        return None;
    }
    let parameters = match after.split_once(')')?.0 {
        "void" => String::new(),
        list => list.split(',').map(declaration).collect::<Vec<_>>().join(", "),
    };
    let result = if result == "void" { String::new() } else { format!(" -> {}", rust(result)) };
    Some(format!("pub fn {name}({parameters}){result};"))
}

#[test]
fn declares_what_the_header_declares() {
    let header = fs::read_to_string("vendor/include/hmalloc/hmalloc.h").unwrap();
    let ours = fs::read_to_string("src/lib.rs").unwrap();
    let wanted: Vec<_> = header.lines().filter_map(function).collect();
    let declared: Vec<_> = ours.lines().map(str::trim).filter(|line| line.starts_with("pub fn")).collect();
    assert!(wanted.len() > 25, "the header is not read as it is written");
    assert_eq!(declared, wanted);
}

#[test]
fn has_the_fields_of_the_statistics() {
    let header = fs::read_to_string("vendor/include/hmalloc/hmalloc.h").unwrap();
    let ours = fs::read_to_string("src/lib.rs").unwrap();
    let fields = |text: &str, opening: &str| -> Vec<String> {
        let from = text.split_once(opening).expect(opening).1;
        from.split_once("\n}").unwrap().0.lines().map(|line| line.trim().to_string()).collect()
    };
    let wanted: Vec<_> = fields(&header, "struct hm_stats {")
        .iter()
        .filter_map(|line| line.split_once(';'))
        .map(|(field, _)| format!("pub {},", declaration(field)))
        .collect();
    let mut declared = fields(&ours, "pub struct hm_stats {");
    declared.retain(|line| line.starts_with("pub"));
    assert_eq!(declared, wanted);
}

#[test]
fn has_the_version_of_the_library() {
    let version = unsafe { CStr::from_ptr(hmalloc_sys::hm_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

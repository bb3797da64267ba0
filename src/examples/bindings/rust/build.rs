//! Tells the linker where libstrobe-c.so is, unless it is in a folder of the system: in STROBE_C_FOLDER.

fn main() {
    println!("cargo:rerun-if-env-changed=STROBE_C_FOLDER");
    if let Ok(folder) = std::env::var("STROBE_C_FOLDER") {
        println!("cargo:rustc-link-search=native={}", folder);
    }
}

//! Strobe from Rust: a session, registered threads, labels and zones, each for the life of a value.
//!
//! ```no_run
//! # fn main() -> Result<(), strobe::Error> {
//! let session = strobe::Session::start(&[("exporter.directory", "profiles")])?;
//! let _thread = strobe::Thread::register("main")?;
//! let _label = strobe::Label::text("endpoint", "/pay")?;
//! // ... the work ...
//! session.stop()
//! # }
//! ```
use std::ffi::{CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int};

#[link(name = "strobe-c")]
extern "C" {
    fn strobe_start(options: *const c_char) -> c_int;
    fn strobe_stop() -> c_int;
    fn strobe_flush() -> c_int;
    fn strobe_register_thread(name: *const c_char) -> c_int;
    fn strobe_unregister_thread() -> c_int;
    fn strobe_push_text_label(key: *const c_char, text: *const c_char) -> c_int;
    fn strobe_push_number_label(key: *const c_char, number: i64) -> c_int;
    fn strobe_push_zone(name: *const c_char) -> c_int;
    fn strobe_pop_label() -> c_int;
    fn strobe_last_status(text: *mut c_char, size: usize) -> c_int;
}

const STATUS_BYTES: usize = 512;

/// A call that has failed. `code` is a strobe_code of strobe/c.h.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    pub code: i32,
    pub reason: String,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl std::error::Error for Error {}

fn check(code: c_int) -> Result<(), Error> {
    if code == 0 {
        return Ok(());
    }
    let mut text = [0 as c_char; STATUS_BYTES];
    // The function ends the text with a NUL within the given size.
    let reason = unsafe {
        strobe_last_status(text.as_mut_ptr(), STATUS_BYTES);
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    Err(Error { code, reason })
}

/// The text up to its first NUL.
fn c_text(text: &str) -> CString {
    let bytes = text.bytes().take_while(|byte| *byte != 0).collect::<Vec<u8>>();
    CString::new(bytes).unwrap_or_default()
}

/// The one session of the process. It ends with `stop`, or with this value, which then drops the status.
pub struct Session(());

impl Session {
    /// Begins a session with fields and values of src/docs/options.md. Only the first one may have some.
    pub fn start(options: &[(&str, &str)]) -> Result<Session, Error> {
        let lines = options.iter().map(|(field, value)| format!("{}={}\n", field, value)).collect::<String>();
        check(unsafe { strobe_start(c_text(&lines).as_ptr()) })?;
        Ok(Session(()))
    }

    /// Exports what has been sampled so far. The session goes on.
    pub fn flush(&self) -> Result<(), Error> {
        check(unsafe { strobe_flush() })
    }

    /// Ends the session, and returns when its profile is exported.
    pub fn stop(self) -> Result<(), Error> {
        std::mem::forget(self);
        check(unsafe { strobe_stop() })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        unsafe { strobe_stop() };
    }
}

/// The calling thread is sampled for the life of this value, which stays on the thread.
pub struct Thread(PhantomData<*const ()>);

impl Thread {
    pub fn register(name: &str) -> Result<Thread, Error> {
        check(unsafe { strobe_register_thread(c_text(name).as_ptr()) })?;
        Ok(Thread(PhantomData))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        unsafe { strobe_unregister_thread() };
    }
}

/// The calling thread's samples have a label, or are in a zone, for the life of this value. Values end in the
/// reverse order of their beginnings, as variables of a scope do, on the thread where they began.
pub struct Label(PhantomData<*const ()>);

impl Label {
    pub fn text(key: &str, text: &str) -> Result<Label, Error> {
        check(unsafe { strobe_push_text_label(c_text(key).as_ptr(), c_text(text).as_ptr()) })?;
        Ok(Label(PhantomData))
    }

    pub fn number(key: &str, number: i64) -> Result<Label, Error> {
        check(unsafe { strobe_push_number_label(c_text(key).as_ptr(), number) })?;
        Ok(Label(PhantomData))
    }

    pub fn zone(name: &str) -> Result<Label, Error> {
        check(unsafe { strobe_push_zone(c_text(name).as_ptr()) })?;
        Ok(Label(PhantomData))
    }
}

impl Drop for Label {
    fn drop(&mut self) {
        unsafe { strobe_pop_label() };
    }
}

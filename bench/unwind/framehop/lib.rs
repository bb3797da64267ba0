//! framehop behind four C functions, for bench/unwind/contenders.cc.
use framehop::{CacheNative, ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, Unwinder, UnwindRegsNative, UnwinderNative};

type Bytes = &'static [u8];

pub struct State {
    unwinder: UnwinderNative<Bytes, MustNotAllocateDuringUnwind>,
    cache: CacheNative<MustNotAllocateDuringUnwind>,
}

#[no_mangle]
pub extern "C" fn strobe_framehop_new() -> *mut State {
    Box::into_raw(Box::new(State { unwinder: UnwinderNative::new(), cache: CacheNative::new_in() }))
}

/// # Safety
/// `state` comes from strobe_framehop_new.
#[no_mangle]
pub unsafe extern "C" fn strobe_framehop_delete(state: *mut State) {
    drop(Box::from_raw(state));
}

/// # Safety
/// Both sections are mapped, and stay so as long as `state` is used.
#[no_mangle]
pub unsafe extern "C" fn strobe_framehop_add(
    state: *mut State,
    text_start: u64,
    text_limit: u64,
    header: *const u8,
    header_bytes: usize,
    frames: *const u8,
    frames_bytes: usize,
) {
    let range = |start: *const u8, bytes: usize| Some(start as u64..start as u64 + bytes as u64);
    (*state).unwinder.add_module(Module::new(
        String::new(),
        text_start..text_limit,
        text_start,
        ExplicitModuleSectionInfo {
            base_svma: text_start,
            text_svma: Some(text_start..text_limit),
            eh_frame_svma: range(frames, frames_bytes),
            eh_frame: Some(std::slice::from_raw_parts(frames, frames_bytes)),
            eh_frame_hdr_svma: range(header, header_bytes),
            eh_frame_hdr: Some(std::slice::from_raw_parts(header, header_bytes)),
            ..Default::default()
        },
    ));
}

/// # Safety
/// The stack is readable from `sp` to `top`; there is room for `capacity` addresses.
#[no_mangle]
pub unsafe extern "C" fn strobe_framehop_walk(
    state: *mut State,
    pc: u64,
    sp: u64,
    fp: u64,
    top: u64,
    output: *mut u64,
    capacity: usize,
) -> usize {
    let state = &mut *state;
    let mut read = |address: u64| {
        if address >= sp && address <= top - 8 && address % 8 == 0 {
            Ok(*(address as *const u64))
        } else {
            Err(())
        }
    };
    let mut frames = state.unwinder.iter_frames(pc, UnwindRegsNative::new(pc, sp, fp), &mut state.cache, &mut read);
    let mut count = 0;
    while count < capacity {
        let Ok(Some(frame)) = frames.next() else { break };
        *output.add(count) = frame.address_for_lookup();
        count += 1;
    }
    count
}

//! A checkpoint in which a byte was changed and the checksum with it: whatever follows is a code, a fault of the library among them, of which the
//! handle's error tells and stderr nothing.

use std::ffi::{CStr, CString};
use std::fs;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use vef_replay::builder::{vef_builder_add_job, vef_builder_build, vef_builder_free, vef_builder_new};
use vef_replay::instance::*;
use vef_replay::message::Message;
use vef_replay::status::{VEF_ERROR_INTERNAL, VEF_OK};

static PRINTED: AtomicU32 = AtomicU32::new(0);

fn replay(trace: &CStr) -> *mut Instance {
    let mut replay = null_mut();
    // SAFETY: handles that are used here alone, and a string.
    unsafe {
        let builder = vef_builder_new();
        assert_eq!(vef_builder_add_job(builder, trace.as_ptr()), 0);
        assert_eq!(vef_builder_build(builder, &raw mut replay), VEF_OK);
        vef_builder_free(builder);
    }
    replay
}

/// Takes and delivers messages, at most so many times; the first code that is an error.
unsafe fn play(replay: *mut Instance, most: u32) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        for _ in 0..most {
            // SAFETY: plain numbers, for which 0 is a value.
            let mut message: Message = std::mem::zeroed();
            let mut now = 0;
            match vef_replay_next_ready(replay, &raw mut now) {
                1 => {}
                code => return code,
            }
            match vef_replay_pop_ready(replay, now, &raw mut message, size_of::<Message>()) {
                1 => {}
                code if code < 0 => return code,
                _ => continue,
            }
            let code = vef_replay_delivered(replay, message.id, now);
            if code < 0 {
                return code;
            }
        }
        0
    }
}

#[test]
fn faults_are_codes_and_print_nothing() {
    std::panic::set_hook(Box::new(|_| {
        PRINTED.fetch_add(1, Ordering::Relaxed);
    }));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.vef");
    let mut text = "VEF3 3 3 1 1 3 0 1000\nC0 0 1 2\n".to_owned();
    (0..3).for_each(|rank| text += &format!("{rank} {rank} {} 100 4 10 -1\n", (rank + 1) % 3));
    (0..3).for_each(|rank| text += &format!("G0 C0 2 {rank} 64 64 1 5 {rank}\n"));
    fs::write(&path, text).unwrap();
    let trace = CString::new(path.to_str().unwrap()).unwrap();
    let one = replay(&trace);
    let mut state = vec![0u8; 1 << 16];
    // SAFETY: handles that are used here alone, and memory of this function.
    unsafe {
        assert_eq!(play(one, 4), 0);
        let size = vef_replay_save(one, state.as_mut_ptr().cast(), state.len());
        state.truncate(usize::try_from(size).unwrap());
        vef_replay_free(one);
    }
    let (mut faults, mut told) = (0, 0);
    for at in 12..state.len() - 4 {
        for value in [0, 1, 0x7f] {
            let mut changed = state.clone();
            changed[at] = value;
            let end = changed.len() - 4;
            let checksum = crc32fast::hash(&changed[..end]).to_le_bytes();
            changed[end..].copy_from_slice(&checksum);
            let other = replay(&trace);
            // SAFETY: as above.
            unsafe {
                let mut code = vef_replay_restore(other, changed.as_ptr().cast(), changed.len());
                if code == VEF_OK {
                    code = play(other, 100);
                }
                if code == VEF_ERROR_INTERNAL {
                    faults += 1;
                    let error = CStr::from_ptr(vef_replay_error(other)).to_str().unwrap();
                    told += u32::from(error.starts_with("a fault in vef_replay: ") && error.contains(".rs:"));
                }
                vef_replay_free(other);
            }
        }
    }
    let _ = std::panic::take_hook();
    assert!(faults > 0, "nothing that was changed mattered");
    assert_eq!((told, PRINTED.load(Ordering::Relaxed)), (faults, 0));
}

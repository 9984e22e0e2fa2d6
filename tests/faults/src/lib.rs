//! Makes one system call of a program fail, or kills the program in the middle of it.
//!
//! Preload this library with `LD_PRELOAD`. It counts the calls that change files below a folder:
//! open to create, write, flush, rename, remove, truncate, make a directory. Environment variables:
//!
//! - `FAULTS_FOLDER`: the folder, an absolute path without links.
//! - `FAULTS_AT`: the number of the faulty call, from 1.
//! - `FAULTS_KIND`: `fail` (this call fails: the disk is full), `full` (this call and all later
//!   ones that need space fail) or `kill` (SIGKILL). A faulty write still writes half of its bytes.
//! - `FAULTS_HIT`: a file to create when the fault happens.
//!
//! Real calls are made by number, because this library replaces libc's functions.
#![cfg(target_os = "linux")]
#![allow(
    missing_docs,
    clippy::missing_safety_doc,
    reason = "each function has the contract of libc's function"
)]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    os::unix::ffi::OsStrExt,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use libc::{iovec, off64_t, size_t, ssize_t};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fail,
    Full,
    Kill,
}

struct Plan {
    folder: Vec<u8>,
    at: u64,
    kind: Kind,
    hit: Vec<u8>,
}

static CALLS: AtomicU64 = AtomicU64::new(0);

fn plan() -> Option<&'static Plan> {
    static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
    let read = || {
        let bytes = |name| Some(std::env::var_os(name)?.as_bytes().to_vec());
        let kind = match &bytes("FAULTS_KIND")?[..] {
            b"fail" => Kind::Fail,
            b"full" => Kind::Full,
            b"kill" => Kind::Kill,
            _ => return None,
        };
        let mut hit = bytes("FAULTS_HIT")?;
        hit.push(0);
        Some(Plan {
            folder: bytes("FAULTS_FOLDER")?,
            at: std::env::var("FAULTS_AT").ok()?.parse().ok()?,
            kind,
            hit,
        })
    };
    PLAN.get_or_init(read).as_ref()
}

/// What to do with a call.
enum Action {
    Pass,
    Fail,
    Kill,
}

/// Counts a call on a path and decides; `space` says whether it needs disk space.
fn decide(path: Option<&[u8]>, space: bool) -> Action {
    let (Some(plan), Some(path)) = (plan(), path) else {
        return Action::Pass;
    };
    if !path.starts_with(&plan.folder) {
        return Action::Pass;
    }
    let call = CALLS.fetch_add(1, Ordering::SeqCst) + 1;
    let later = plan.kind == Kind::Full && call > plan.at && space;
    if call != plan.at && !later {
        return Action::Pass;
    }
    if call == plan.at {
        // SAFETY: the path ends in a zero byte; the descriptor is closed here.
        unsafe {
            let flags = libc::O_CREAT | libc::O_WRONLY;
            let file =
                libc::syscall(libc::SYS_openat, libc::AT_FDCWD, plan.hit.as_ptr(), flags, 0o600);
            libc::syscall(libc::SYS_close, file);
        }
    }
    match plan.kind {
        Kind::Kill => Action::Kill,
        _ => Action::Fail,
    }
}

fn kill() -> ! {
    // SAFETY: the call has no pointers and does not return.
    unsafe {
        libc::syscall(libc::SYS_kill, libc::getpid(), libc::SIGKILL);
        libc::_exit(137)
    }
}

fn full() -> c_int {
    // SAFETY: `__errno_location` returns this thread's valid errno.
    unsafe { *libc::__errno_location() = libc::ENOSPC };
    -1
}

/// Path of an open file.
fn path_of(file: c_int, buffer: &mut [u8; 4096]) -> Option<&[u8]> {
    let mut link = [0u8; 32];
    use std::io::Write;
    write!(&mut link[..31], "/proc/self/fd/{file}").ok()?;
    // SAFETY: `link` ends in a zero byte; the buffer has the given length.
    let length = unsafe {
        libc::syscall(
            libc::SYS_readlinkat,
            libc::AT_FDCWD,
            link.as_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    };
    buffer.get(..usize::try_from(length).ok()?)
}

/// Makes a path absolute.
///
/// # Safety
/// `path` ends in a zero byte.
unsafe fn absolute(path: *const c_char) -> Option<Vec<u8>> {
    // SAFETY: guaranteed by the caller.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if path.first() == Some(&b'/') {
        return Some(path.to_vec());
    }
    let folder = std::env::current_dir().ok()?;
    Some([folder.as_os_str().as_bytes(), b"/", path].concat())
}

/// Makes a call by number, unless it must fail or kill.
macro_rules! call {
    ($action:expr, $number:ident($($argument:expr),*)) => {
        match $action {
            // SAFETY: the caller guarantees its own arguments.
            Action::Pass => unsafe { libc::syscall(libc::$number, $($argument),*) },
            Action::Fail => full().into(),
            Action::Kill => kill(),
        }
    };
}

fn on_file(file: c_int, space: bool) -> Action {
    let mut buffer = [0; 4096];
    decide(path_of(file, &mut buffer), space)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: c_int, bytes: *const c_void, length: size_t) -> ssize_t {
    let action = on_file(file, true);
    if !matches!(action, Action::Pass) {
        // SAFETY: guaranteed by the caller for all bytes, so for half of them.
        unsafe { libc::syscall(libc::SYS_write, file, bytes, length / 2) };
    }
    call!(action, SYS_write(file, bytes, length)) as ssize_t
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(
    file: c_int,
    bytes: *const c_void,
    length: size_t,
    at: off64_t,
) -> ssize_t {
    let action = on_file(file, true);
    if !matches!(action, Action::Pass) {
        // SAFETY: guaranteed by the caller for all bytes, so for half of them.
        unsafe { libc::syscall(libc::SYS_pwrite64, file, bytes, length / 2, at) };
    }
    call!(action, SYS_pwrite64(file, bytes, length, at)) as ssize_t
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(file: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    let action = on_file(file, true);
    if !matches!(action, Action::Pass) {
        // SAFETY: guaranteed by the caller for all pieces, so for half of them.
        unsafe { libc::syscall(libc::SYS_writev, file, pieces, count / 2) };
    }
    call!(action, SYS_writev(file, pieces, count)) as ssize_t
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(file: c_int) -> c_int {
    call!(on_file(file, false), SYS_fsync(file)) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    call!(on_file(file, false), SYS_fdatasync(file)) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate64(file: c_int, length: off64_t) -> c_int {
    call!(on_file(file, false), SYS_ftruncate(file, length)) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { renameat2(libc::AT_FDCWD, from, libc::AT_FDCWD, to, 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat2(
    from_folder: c_int,
    from: *const c_char,
    to_folder: c_int,
    to: *const c_char,
    flags: u32,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    let path = unsafe { absolute(to) };
    let action = decide(path.as_deref(), false);
    call!(action, SYS_renameat2(from_folder, from, to_folder, to, flags)) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { unlinkat(libc::AT_FDCWD, path, 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: guaranteed by the caller.
    let whole = unsafe { absolute(path) };
    let action = decide(whole.as_deref(), false);
    call!(action, SYS_unlinkat(folder, path, flags)) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdir(path: *const c_char, mode: u32) -> c_int {
    // SAFETY: guaranteed by the caller.
    let whole = unsafe { absolute(path) };
    let action = decide(whole.as_deref(), true);
    call!(action, SYS_mkdirat(libc::AT_FDCWD, path, mode)) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: u32) -> c_int {
    let creates = flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
    let action = match creates {
        true => {
            // SAFETY: guaranteed by the caller.
            let whole = unsafe { absolute(path) };
            decide(whole.as_deref(), true)
        }
        false => Action::Pass,
    };
    call!(action, SYS_openat(libc::AT_FDCWD, path, flags | libc::O_LARGEFILE, mode)) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: u32) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { open64(path, flags, mode) }
}

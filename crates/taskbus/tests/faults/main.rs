//! The SQLite store on a disk that can be watched and that can fail: a library in C stands between a process and its
//! files (`shim.c`), what it wrote down becomes the images that a power cut would leave, and it makes single calls fail.
//! What was acknowledged must be there, each time.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod failing;
mod image;
mod moved;
mod power;
mod record;
mod shim;
mod workload;

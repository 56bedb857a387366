//! The command line, tried from outside: the real binary, real files, real directories.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod arguments;
mod bench;
mod bus;
mod claude;
mod commands;
mod config;
mod demo;
mod follow;
mod hook_stop;
mod hooks;
mod init;
mod output;
mod panel;
mod places;
mod plans;
mod setup;
mod stores;
mod torture;

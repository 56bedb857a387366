//! A process that does nothing, linked as `taskbus` is: what `bench/processes` measures commands against.

fn main() {}

// Panics in a function that is inlined into another one. With an argument, it prints the maps of its
// process before.
use std::fs;
#[inline(always)]
fn settle(v: &[i32], i: usize) -> i32 {
    v[i] + 1
}
#[inline(never)]
fn close(v: &[i32], i: usize) -> i32 {
    settle(v, i) * 2
}
fn main() {
    if std::env::args().count() > 1 {
        eprint!("{}", fs::read_to_string("/proc/self/maps").unwrap());
    }
    let v = vec![1, 2, 3];
    println!("{}", close(&v, std::env::args().count() + 5));
}

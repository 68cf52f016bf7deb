// Variables of every shape that Rust has.
#![allow(dead_code)]
use std::sync::atomic::{AtomicU32, Ordering};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    name: [u8; 6],
    kind: Kind,
    refs: u32,
}

#[repr(u16)]
#[derive(Clone, Copy)]
pub enum Kind {
    Plain = 1,
    Other = 2,
}

pub enum Shape {
    Circle(u32, u64),
    Square { side: u16 },
    Nothing,
}

#[no_mangle]
pub static mut TABLE: [Entry; 4] = [Entry { name: [0; 6], kind: Kind::Plain, refs: 7 }; 4];
#[no_mangle]
pub static mut TUPLE: (u8, u32, (u64, u16)) = (1, 2, (3, 4));
#[no_mangle]
pub static mut SHAPE: Shape = Shape::Square { side: 3 };
#[no_mangle]
pub static mut MAYBE: Option<(u32, u64)> = Some((1, 2));
#[no_mangle]
pub static COUNT: [AtomicU32; 3] = [AtomicU32::new(1), AtomicU32::new(2), AtomicU32::new(3)];
#[no_mangle]
pub static mut SLICE: &[u32] = &[1, 2, 3];

fn main() {
    unsafe {
        COUNT[1].fetch_add(TABLE[1].refs + TUPLE.1, Ordering::Relaxed);
        if let Shape::Circle(..) = *&raw const SHAPE {
            TUPLE.0 = 1;
        }
        if (*&raw const MAYBE).is_some() {
            TUPLE.0 = SLICE.len() as u8;
        }
    }
}

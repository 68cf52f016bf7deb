// Prints its own modules, maps and a backtrace as symbolizer markup. For 64-bit Linux.
use std::ffi::{c_char, c_int, c_void, CStr};

#[repr(C)]
struct Phdr { kind: u32, flags: u32, offset: u64, vaddr: usize, paddr: u64, filesz: u64, memsz: usize, align: u64 }

#[repr(C)]
struct Info { addr: usize, name: *const c_char, phdr: *const Phdr, phnum: u16 }

extern "C" {
    fn dl_iterate_phdr(f: extern "C" fn(&Info, usize, &mut usize) -> c_int, arg: &mut usize) -> c_int;
    fn _Unwind_Backtrace(f: extern "C" fn(*mut c_void, &mut usize) -> c_int, arg: &mut usize) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut c_void, precise: &mut c_int) -> usize;
}

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;

/// The payload of the GNU build ID note among notes.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    while notes.len() >= 16 {
        let word = |i: usize| u32::from_ne_bytes(notes[i..i + 4].try_into().unwrap()) as usize;
        let (name, payload, kind) = (word(0), word(4), word(8));
        let start = 12 + (name + 3) / 4 * 4;
        if kind == 3 && &notes[12..12 + name] == b"GNU\0" {
            return notes.get(start..start + payload);
        }
        notes = notes.get(start + (payload + 3) / 4 * 4..)?;
    }
    None
}

extern "C" fn print_module(info: &Info, _: usize, next_id: &mut usize) -> c_int {
    let id = *next_id;
    *next_id += 1;
    let mut name = unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned();
    if name.is_empty() { // the program itself
        name = std::fs::read_link("/proc/self/exe").unwrap_or_default().to_string_lossy().into_owned();
    }
    let segments = unsafe { std::slice::from_raw_parts(info.phdr, info.phnum as usize) };
    let notes = segments.iter().filter(|p| p.kind == PT_NOTE);
    let id_bytes = notes.filter_map(|p| build_id(unsafe { std::slice::from_raw_parts((info.addr + p.vaddr) as *const u8, p.memsz) })).next();
    let hex: String = id_bytes.unwrap_or_default().iter().map(|b| format!("{b:02x}")).collect();
    println!("{{{{{{module:{id}:{name}:elf:{hex}}}}}}}");
    for p in segments.iter().filter(|p| p.kind == PT_LOAD) {
        let mode: String = [(4, 'r'), (2, 'w'), (1, 'x')].iter().filter(|m| p.flags & m.0 != 0).map(|m| m.1).collect();
        println!("{{{{{{mmap:{:#018x}:{:#x}:load:{id}:{mode}:{:#018x}}}}}}}", info.addr + p.vaddr, p.memsz, p.vaddr);
    }
    0
}

extern "C" fn print_frame(context: *mut c_void, next_frame: &mut usize) -> c_int {
    let mut precise = 0; // 1: interrupted by a signal, the address is that of the instruction
    let address = unsafe { _Unwind_GetIPInfo(context, &mut precise) };
    if address != 0 {
        println!("{{{{{{bt:{next_frame}:{address:#018x}:{}}}}}}}", if precise != 0 { "pc" } else { "ra" });
        *next_frame += 1;
    }
    0
}

fn print_backtrace() {
    println!("{{{{{{reset}}}}}}");
    unsafe { dl_iterate_phdr(print_module, &mut 0) };
    unsafe { _Unwind_Backtrace(print_frame, &mut 0) };
}

#[inline(always)]
fn inlined() { print_backtrace() }

#[inline(never)]
fn work() {
    inlined();
    println!("worked"); // what is called last may have no frame of its own
}

fn main() { work(); println!("done") }

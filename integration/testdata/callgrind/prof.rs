// A program for profiles: generic functions, closures, trait objects and recursion.
use std::collections::HashMap;

trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Sum(Vec<Box<dyn Shape>>);
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}
impl Shape for Sum {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0.iter().map(|s| s.area()).sum()
    }
}

#[inline(never)]
fn fib(n: u64) -> u64 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

#[inline(never)]
fn apply<F: Fn(u64) -> u64>(f: F, n: u64) -> u64 {
    (0..n).map(|i| f(i)).sum()
}

#[inline(never)]
fn words(text: &str) -> HashMap<&str, usize> {
    let mut all = HashMap::new();
    for w in text.split(' ') {
        *all.entry(w).or_insert(0) += 1;
    }
    all
}

fn main() {
    let shapes = Sum((0..20).map(|i| Box::new(Square(i)) as Box<dyn Shape>).collect());
    let mut names: Vec<String> = (0..50).map(|i| format!("{}", i * 37 % 101)).collect();
    names.sort();
    println!("{} {} {} {}", shapes.area(), fib(12), apply(|i| i * fib(i % 5), 30), words(&names.join(" ")).len());
}

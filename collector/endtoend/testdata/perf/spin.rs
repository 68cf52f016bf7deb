// Spends its time in a generic function, into which a method is inlined, and in another method.
use std::hint::black_box;

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);

struct Circle {
    radius: f64,
}

impl Shape for Square {
    #[inline(always)]
    fn area(&self) -> f64 {
        self.0.sqrt() * self.0
    }
}

impl Shape for Circle {
    #[inline(never)]
    fn area(&self) -> f64 {
        (0..200).map(|i| (self.radius * i as f64).sqrt()).sum()
    }
}

#[inline(never)]
fn total<T: Shape>(shapes: &[T]) -> f64 {
    shapes.iter().map(|s| s.area()).sum()
}

fn main() {
    let squares: Vec<_> = (0..20000).map(|i| Square(i as f64)).collect();
    let circles: Vec<_> = (0..200).map(|i| Circle { radius: i as f64 }).collect();
    let mut sum = 0.0;
    for _ in 0..1500 {
        sum += total(black_box(&squares)) + total(black_box(&circles));
    }
    println!("{}", sum > 0.0);
}

// SPDX-License-Identifier: Apache-2.0
// Native frames of a program of Rust.
use std::os::raw::c_char;

extern "C" {
    fn cudaLaunchKernel(name: *const c_char, ns: u64) -> i32;
}

mod solver {
    pub trait Relax {
        fn relax(&self, times: usize);
    }

    pub struct Field<T> {
        pub values: Vec<T>,
    }

    impl<T> Relax for Field<T> {
        #[inline(never)]
        fn relax(&self, times: usize) {
            for i in 0..times {
                let launch = |ns: u64| unsafe { super::cudaLaunchKernel(b"_Z6smoothPKfi\0".as_ptr() as *const _, ns) }; // RELAX
                std::hint::black_box(launch(30_000 + i as u64));
            }
        }
    }

    #[inline(never)]
    pub fn step(field: &Field<f32>) {
        field.relax(2);
        std::hint::black_box(());
    }
}

fn main() {
    let field = solver::Field { values: vec![0f32; 16] };
    for _ in 0..10 {
        solver::step(&field);
    }
}

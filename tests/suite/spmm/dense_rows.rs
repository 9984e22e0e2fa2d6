//! SpMM with dense rows: every sparsity pattern, forward and both gradients.

use burn::tensor::{Tensor, TensorData};
use sparsek::sparse::{Adjacency, Pattern, spmm, spmm_weighted};
use sparsek_tests::{
    backend::Backend,
    data::{Random, normals},
    oracle::spmm::{Bounded, Csr},
    panics::expect_panic,
    runner::Cases,
    sparse::pattern,
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    for shape in PatternKind::ALL {
        for width in [1, 3, 32, 33, 130] {
            cases.check(
                backend,
                format!("tensor/spmm/{shape:?}/{width}").to_lowercase(),
                move |b| forward_and_backward(b, shape, width),
            );
        }
    }
    cases.check(backend, "tensor/spmm/checkpointed", |b| {
        gradients(b, &PatternKind::Ragged.csr(), 17, true)
    });
    cases.check(backend, "tensor/spmm/patterns", |_| patterns());
    cases.check(backend, "tensor/spmm/panics", panics);
}

#[derive(Clone, Copy, Debug)]
enum PatternKind {
    /// Random row lengths, columns unsorted and repeated.
    Ragged,
    /// Most rows are empty, including the first and last.
    Empty,
    /// One row and one column hold most entries.
    Hub,
    Wide,
    Tall,
    Nothing,
    /// More rows than a Vulkan grid dimension allows.
    Many,
}

impl PatternKind {
    const ALL: [Self; 7] =
        [Self::Ragged, Self::Empty, Self::Hub, Self::Wide, Self::Tall, Self::Nothing, Self::Many];

    fn csr(self) -> Csr {
        let mut random = Random::new(self as u64 + 1);
        let (rows, cols) = match self {
            Self::Ragged | Self::Empty | Self::Nothing => (90, 90),
            Self::Hub => (150, 150),
            Self::Wide => (5, 400),
            Self::Tall => (400, 5),
            Self::Many => (66_000, 10),
        };
        let mut indptr = vec![0u32];
        let mut indices = Vec::new();
        for i in 0..rows {
            let degree = match self {
                Self::Ragged => random.below(20),
                Self::Empty => {
                    if i % 7 == 3 {
                        9
                    } else {
                        0
                    }
                }
                Self::Hub => {
                    if i == 70 {
                        1000
                    } else {
                        2
                    }
                }
                Self::Wide => 130,
                Self::Tall | Self::Many => random.below(4),
                Self::Nothing => 0,
            };
            for e in 0..degree {
                let hub = matches!(self, Self::Hub) && e == 0;
                indices.push(if hub { 70 } else { random.below(cols) as u32 });
            }
            indptr.push(indices.len() as u32);
        }
        let weights = indices.iter().map(|_| f64::from(random.normal() as f32)).collect();
        Csr { rows, cols, indptr, indices, weights }
    }
}

fn upload<const D: usize>(
    data: &[f64],
    shape: [usize; D],
    device: &burn::tensor::Device,
) -> Tensor<D> {
    let data: Vec<f32> = data.iter().map(|&x| x as f32).collect();
    Tensor::from_data(TensorData::new(data, shape), device)
}

fn compare<const D: usize>(what: &str, found: Tensor<D>, expected: &Bounded) -> Result<(), String> {
    let found: Vec<f64> = found.into_data().iter::<f64>().collect();
    expected.check(&found, f64::from(f32::EPSILON)).map_err(|e| format!("{what}: {e}"))
}

fn forward_and_backward(backend: &Backend, shape: PatternKind, width: usize) -> Result<(), String> {
    let csr = shape.csr();
    let adjacency = Adjacency::new(&pattern(&csr), &backend.device);
    if (adjacency.rows(), adjacency.cols(), adjacency.nnz())
        != (csr.rows, csr.cols, csr.indices.len())
    {
        return Err("the adjacency has another size than its pattern".into());
    }
    let x = normals(csr.cols * width, 1);
    let on_device = upload(&x, [csr.cols, width], &backend.device);
    let y = spmm_weighted(
        &adjacency,
        upload(&csr.weights, [csr.weights.len()], &backend.device),
        on_device.clone(),
    );
    if y.dims() != [csr.rows, width] {
        return Err(format!("shape {:?}", y.dims()));
    }
    compare("weighted", y, &csr.spmm(&x, width))?;
    compare("sum", spmm(&adjacency, on_device), &ones(&csr).spmm(&x, width))?;
    gradients(backend, &csr, width, false)
}

fn ones(csr: &Csr) -> Csr {
    Csr { weights: vec![1.0; csr.weights.len()], ..csr.clone() }
}

fn gradients(
    backend: &Backend,
    csr: &Csr,
    width: usize,
    checkpointing: bool,
) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let device = if checkpointing { device.gradient_checkpointing() } else { device };
    let adjacency = Adjacency::new(&pattern(csr), &device);
    let x = normals(csr.cols * width, 2);
    let g = normals(csr.rows * width, 3);
    let leaf = |data: &[f64], rows| upload(data, [rows, width], &device);

    let inputs = leaf(&x, csr.cols).require_grad();
    let weights = upload(&csr.weights, [csr.weights.len()], &device).require_grad();
    let y = spmm_weighted(&adjacency, weights.clone(), inputs.clone());
    let gradients = (y * leaf(&g, csr.rows)).backward();
    compare("dx", inputs.grad(&gradients).ok_or("no gradient for x")?, &csr.grad_x(&g, width))?;
    compare(
        "dw",
        weights.grad(&gradients).ok_or("no gradient for the weights")?,
        &csr.grad_weights(&g, &x, width),
    )?;

    let inputs = leaf(&x, csr.cols).require_grad();
    // Doubling is exact; checkpointing recomputes it in the backward pass.
    let y = spmm(&adjacency, inputs.clone() * 2.0);
    let gradients = (y * leaf(&g, csr.rows) * 0.5).backward();
    compare(
        "dx of the sum",
        inputs.grad(&gradients).ok_or("no gradient for x")?,
        &ones(csr).grad_x(&g, width),
    )?;

    // Only the weights are tracked.
    let weights = upload(&csr.weights, [csr.weights.len()], &device).require_grad();
    let gradients = (spmm_weighted(&adjacency, weights.clone(), leaf(&x, csr.cols))
        * leaf(&g, csr.rows))
    .backward();
    compare(
        "dw alone",
        weights.grad(&gradients).ok_or("no gradient for the weights")?,
        &csr.grad_weights(&g, &x, width),
    )
}

fn patterns() -> Result<(), String> {
    // Name, rows and columns, arrays, a word of the message.
    type Wrong = (&'static str, [usize; 2], Vec<u32>, Vec<u32>, &'static str);
    let wrong: [Wrong; 5] = [
        ("offsets too short", [3, 3], vec![0, 1, 2], vec![0, 1], "3"),
        ("offsets that fall", [3, 3], vec![0, 2, 1, 2], vec![0, 1], "1"),
        ("offsets that do not start at 0", [2, 3], vec![1, 1, 2], vec![0, 1], "1"),
        ("offsets that end early", [2, 3], vec![0, 1, 1], vec![0, 1], "2"),
        ("a column out of range", [2, 3], vec![0, 1, 2], vec![0, 3], "3"),
    ];
    for (what, [rows, cols], indptr, indices, word) in wrong {
        match Pattern::new(rows, cols, indptr, indices) {
            Ok(_) => return Err(format!("{what} was accepted")),
            Err(error) if !error.to_string().contains(word) => {
                return Err(format!("{what}: the message lacks {word}: {error}"));
            }
            Err(_) => {}
        }
    }
    for shape in PatternKind::ALL {
        let csr = shape.csr();
        let (transposed, origin) = pattern(&csr).transpose();
        if (transposed.rows(), transposed.cols(), transposed.nnz())
            != (csr.cols, csr.rows, csr.indices.len())
        {
            return Err(format!("{shape:?}: the transpose has another size"));
        }
        let rows_of: Vec<(usize, usize, f64)> = csr.entries().collect();
        let mut seen = vec![false; origin.len()];
        for j in 0..csr.cols {
            for e in transposed.indptr()[j] as usize..transposed.indptr()[j + 1] as usize {
                let (i, column, _) = rows_of[origin[e] as usize];
                if column != j || transposed.indices()[e] as usize != i {
                    return Err(format!(
                        "{shape:?}: entry {e} of the transpose is not entry {}",
                        origin[e]
                    ));
                }
                seen[origin[e] as usize] = true;
            }
        }
        if seen.contains(&false) {
            return Err(format!("{shape:?}: an entry is missing in the transpose"));
        }
    }
    Ok(())
}

fn panics(backend: &Backend) -> Result<(), String> {
    let csr = PatternKind::Wide.csr();
    let adjacency = Adjacency::new(&pattern(&csr), &backend.device);
    let x = upload(&normals(399 * 2, 1), [399, 2], &backend.device);
    let message = expect_panic(|| drop(spmm(&adjacency, x)))?;
    if !message.contains("399") || !message.contains("400") {
        return Err(format!("the message does not say 399 and 400: {message}"));
    }
    let x = upload(&normals(400 * 2, 1), [400, 2], &backend.device);
    let weights = upload(&normals(7, 1), [7], &backend.device);
    let message = expect_panic(|| drop(spmm_weighted(&adjacency, weights, x)))?;
    if !message.contains('7') || !message.contains("650") {
        return Err(format!("the message does not say 7 and 650: {message}"));
    }
    Ok(())
}

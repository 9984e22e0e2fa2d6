//! Keys from float bits; 16-bit floats use their f32 value.

use cubecl::prelude::*;

use super::element::Element;

macro_rules! float_element {
    ($float:ident, $bits:ident, $signed:ident, shift: $shift:literal, sign: $sign:literal,
     minus_inf: $minus_inf:literal, plus_inf: $plus_inf:literal, nan: $nan:literal,
     zero: $zero:literal, normal: $normal:literal, large: $large:literal,
     exponent: $exponent:literal) => {
        #[cube]
        impl Element for $float {
            type Key = $bits;

            fn key(value: Self) -> $bits {
                $float::refined($float::rough(value))
            }

            fn rough(value: Self) -> $bits {
                let bits = $bits::reinterpret(value);
                let fill = $bits::reinterpret($signed::reinterpret(bits) >> $shift);
                // Makes negative NaN greatest too.
                (bits ^ (fill | $sign)) - $minus_inf
            }

            fn refined(rough: $bits) -> $bits {
                min(select(rough == $zero - 1, $zero, rough), $nan)
            }

            fn upper(value: Self) -> $bits {
                $float::rough(value)
            }

            fn refined_upper(rough: $bits) -> $bits {
                $float::refined(rough)
            }

            fn single(value: Self) -> f32 {
                f32::cast_from(value)
            }

            fn midpoint(low: $bits, high: $bits, #[comptime] largest: bool) -> $bits {
                let low = normal_of(if largest { low } else { !low });
                let high = normal_of(if largest { high } else { !high });
                // The sum may overflow. Halve bits: shader compilers turn a/2 + b/2 into (a + b)/2.
                let large = max(low.abs(), high.abs()) >= $large;
                let middle = select(large, halved(low) + halved(high), (low + high) * 0.5);
                let key = $float::key(flushed(middle));
                if largest { key } else { !key }
            }

            fn interpolate(
                low: $bits,
                high: $bits,
                ratio: f32,
                #[comptime] largest: bool,
            ) -> $bits {
                let low = float_of(if largest { low } else { !low });
                let high = float_of(if largest { high } else { !high });
                let guess = low + (high - low) * $float::cast_from(ratio);
                let key = $float::rough(guess);
                if largest { key } else { !key }
            }

            fn is_finite(key: $bits) -> bool {
                key > 0 && key < $plus_inf
            }

            fn zero_key() -> $bits {
                $zero.runtime()
            }

            fn within(low: $bits, high: $bits, least: $bits, greatest: $bits, eps: f32) -> bool {
                let scale = max(normal_of(least).abs(), normal_of(greatest).abs());
                let bound = flushed($float::cast_from(eps) * scale);
                flushed(normal_of(high) - normal_of(low)) <= bound
            }
        }

        /// Flushes subnormals, so all runtimes agree.
        #[cube]
        fn flushed(value: $float) -> $float {
            select(value.abs() < $normal, 0.0, value)
        }

        #[cube]
        fn normal_of(key: $bits) -> $float {
            flushed(float_of(key))
        }

        #[cube]
        fn halved(value: $float) -> $float {
            let bits = $bits::reinterpret(value);
            let normal = value.abs() * 0.5 >= $normal;
            $float::reinterpret(select(normal, bits - $exponent, 0))
        }

        #[cube]
        fn float_of(key: $bits) -> $float {
            let key = key + $minus_inf;
            let positive = key & $sign;
            $float::reinterpret(select(positive != 0, key ^ $sign, !key))
        }
    };
}

mod single {
    use super::*;
    float_element!(
        f32, u32, i32, shift: 31, sign: 0x8000_0000, minus_inf: 0x007f_ffff,
        plus_inf: 0xff00_0001, nan: 0xff00_0002, zero: 0x7f80_0001u32,
        normal: 1.175_494_4e-38, large: 8.507_059e37, exponent: 0x0080_0000
    );
}

mod double {
    use super::*;
    float_element!(
        f64, u64, i64, shift: 63, sign: 0x8000_0000_0000_0000, minus_inf: 0x000f_ffff_ffff_ffff,
        plus_inf: 0xffe0_0000_0000_0001, nan: 0xffe0_0000_0000_0002, zero: 0x7ff0_0000_0000_0001u64,
        normal: 2.225_073_858_507_201_4e-308, large: 4.494_232_837_155_79e307,
        exponent: 0x0010_0000_0000_0000
    );
}

macro_rules! half_element {
    ($half:ident, $value:ident => $single:expr) => {
        #[cube]
        impl Element for $half {
            type Key = u32;

            fn key($value: Self) -> u32 {
                <f32 as Element>::key($single)
            }

            fn rough($value: Self) -> u32 {
                <f32 as Element>::rough($single)
            }

            fn refined(rough: u32) -> u32 {
                <f32 as Element>::refined(rough)
            }

            fn upper(value: Self) -> u32 {
                half_rough(value)
            }

            fn refined_upper(rough: u32) -> u32 {
                half_refined(rough)
            }

            fn single($value: Self) -> f32 {
                $single
            }

            fn midpoint(low: u32, high: u32, #[comptime] largest: bool) -> u32 {
                <f32 as Element>::midpoint(low, high, largest)
            }

            fn interpolate(low: u32, high: u32, ratio: f32, #[comptime] largest: bool) -> u32 {
                <f32 as Element>::interpolate(low, high, ratio, largest)
            }

            fn is_finite(key: u32) -> bool {
                <f32 as Element>::is_finite(key)
            }

            fn zero_key() -> u32 {
                <f32 as Element>::zero_key()
            }

            fn within(low: u32, high: u32, least: u32, greatest: u32, eps: f32) -> bool {
                <f32 as Element>::within(low, high, least, greatest, eps)
            }
        }
    };
}

mod half16 {
    use half::f16;

    use super::*;

    #[cube]
    fn half_rough(value: f16) -> u32 {
        let bits = u32::cast_from(u16::reinterpret(value)) << 16;
        let fill = u32::reinterpret(i32::reinterpret(bits) >> 31);
        (bits ^ (fill | 0x8000_0000)) - 0x03ff_ffff
    }

    #[cube]
    fn half_refined(rough: u32) -> u32 {
        min(select(rough == 0x7c00_0000, 0x7c00_0001, rough), 0xf800_0002)
    }

    half_element!(f16, value => f32::cast_from(value));
}

mod brain16 {
    use super::*;

    #[cube]
    fn half_rough(value: u16) -> u32 {
        <u16 as Element>::rough(value)
    }

    #[cube]
    fn half_refined(rough: u32) -> u32 {
        <u16 as Element>::refined(rough)
    }

    // By bits: some runtimes flush bfloat16 subnormals.
    half_element!(u16, value => f32::reinterpret(u32::cast_from(value) << 16));
}

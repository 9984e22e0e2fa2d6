//! One cube that finishes: what the host decides.

use crate::device::LLVMPIPE_REFUSAL;
use crate::device::is_llvmpipe;
use crate::device::multiprocessors;
use crate::device::plane_or_unit;
use crate::device::units_per_cube;
use cubecl::{
    features::AtomicUsage,
    ir::{ElemType, FloatKind, Type, UIntKind},
};

use super::{
    delegates::DelegateBlueprint,
    find::width,
    finish::FinishBlueprint,
    options::{Filter, Finish, Selection, Subrange, VectorOptions},
    plan::{CUBE_UNITS, Cut, Last, MEMBERS, Plan, Vector, refused},
};
use crate::error::KernelError;
use crate::primitives::team::TeamShape as Shape;

/// Units of the cube, bytes of delegates that each of them holds, and candidates in its shared memory.
const UNITS: u32 = 1024;
const HELD_BYTES: usize = 64;
const ROOM: usize = 1 << 11;
/// Loads that they have under way at a time.
const FLIGHT: usize = 4;

/// How the cube comes by the best delegates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It holds all.
    Held,
    /// It holds the best of the groups that cubes take, then all of the best groups.
    Groups(DelegateBlueprint),
    /// It holds all, which it has found with others.
    AtOnce(DelegateBlueprint),
    /// They are found before.
    Apart(Plan),
}

/// How a vector's members are found by one cube, if the device can do so and it pays.
pub(super) fn finishing(
    vector: &Vector,
    cut: &Cut,
    options: &VectorOptions,
) -> Result<Option<Cut>, KernelError> {
    let blueprint = match blueprint(vector, cut, options) {
        Ok(blueprint) if options.filter != Filter::Off => blueprint,
        Err(error) if options.finish != Finish::Auto => return Err(error),
        _ if options.finish == Finish::Auto => return Ok(None),
        _ => {
            return Err(refused(
                "finish",
                "chosen subranges are not filtered".into(),
            ));
        }
    };
    let auto = options.selection == Selection::Auto;
    let pays = auto && options.k << cut.exponent <= options.tuning.finished;
    if options.filter == Filter::Auto && options.delegates == 1 && !pays {
        return match options.finish {
            Finish::Auto => Ok(None),
            _ => Err(refused(
                "finish",
                "elements of subranges are too many".into(),
            )),
        };
    }
    let ended = |blueprint, way| Cut {
        last: Last::Finish(blueprint, way),
        ..cut.clone()
    };
    let ways = |finish| options.finish == finish || options.finish == Finish::Auto;
    let forced = |finish, reason: String| match options.finish == finish {
        true => Err(refused(finish.name(), reason)),
        false => Ok(()),
    };
    if ways(Finish::AtOnce) {
        match at_once(vector, cut, options, blueprint) {
            Ok((blueprint, find)) => return Ok(Some(ended(blueprint, Way::AtOnce(find)))),
            Err(reason) => forced(Finish::AtOnce, reason)?,
        }
    }
    let held = auto.then(|| holding(&blueprint, cut.delegates(vector.length), vector.key));
    if let Some(items) = held.flatten()
        && ways(Finish::Apart)
    {
        return Ok(Some(ended(
            FinishBlueprint { items, ..blueprint },
            Way::Held,
        )));
    }
    if ways(Finish::Groups) {
        match groups(vector, cut, options) {
            Ok(cut) => return Ok(Some(cut)),
            Err(reason) => forced(Finish::Groups, reason)?,
        }
    }
    let options = VectorOptions {
        subrange: if auto {
            Subrange::Auto
        } else {
            Subrange::Whole
        },
        selection: options.selection,
        ..VectorOptions::new(options.k)
    };
    let first = Plan::of(vector.of_delegates(cut), &options)?;
    Ok(Some(ended(blueprint, Way::Apart(first))))
}

/// How far apart the keys of a dtype are at least, as an exponent: see [`Note::narrow`](super::crew::Note::narrow). Halves have those of f32.
fn spacing(dtype: ElemType) -> u32 {
    match dtype {
        ElemType::Float(FloatKind::F16) => 13,
        ElemType::Float(FloatKind::BF16) => 16,
        _ => 0,
    }
}

/// Delegates of a unit where all units hold so many, if they can.
fn holding(blueprint: &FinishBlueprint, delegates: usize, key: usize) -> Option<usize> {
    let items = delegates.div_ceil(blueprint.shape.lanes as usize);
    let items = items.next_power_of_two();
    (items * key <= HELD_BYTES).then_some(items)
}

/// Whether one delegate of each subrange is found by planes, and selected from as the cube likes.
fn plain(cut: &Cut, options: &VectorOptions) -> Result<(), String> {
    if options.selection != Selection::Auto || cut.per_subrange > 1 || cut.staged {
        return Err("of other selections and constructions, and of several delegates".into());
    }
    Ok(())
}

/// The selection in one launch, or why there is none.
fn at_once(
    vector: &Vector,
    cut: &Cut,
    options: &VectorOptions,
    blueprint: FinishBlueprint,
) -> Result<(FinishBlueprint, DelegateBlueprint), String> {
    let client = vector.client;
    let word = Type::atomic(ElemType::UInt(UIntKind::U64));
    if !client.features().device_memory_scope {
        return Err("cubes do not see what others have stored".into());
    }
    let usage = client.properties().atomic_type_usage(word);
    if !usage.is_superset(AtomicUsage::Exchange | AtomicUsage::Add) {
        return Err("there are no atomics of 64 bits".into());
    }
    plain(cut, options)?;
    let delegates = cut.delegates(vector.length);
    let items = holding(&blueprint, delegates, vector.key)
        .ok_or_else(|| format!("{delegates} delegates; a cube does not hold so many"))?;
    let lanes = blueprint.shape.lanes;
    let find = DelegateBlueprint::new(vector, cut, lanes, options.largest);
    let cubes = multiprocessors(client);
    // As few at a time as leave one cube for each processor.
    let mut several = 1;
    while delegates.div_ceil(find.teams() * several) > cubes {
        several *= 2;
    }
    let find = find
        .taking(cut.exponent, find.teams() * several)
        .filter(|find| find.rounds == 1)
        .ok_or_else(|| format!("more than one load after the other by {cubes} cubes"))?;
    Ok((FinishBlueprint { items, ..blueprint }, find))
}

/// The selection by groups of subranges, or why there is none.
fn groups(vector: &Vector, cut: &Cut, options: &VectorOptions) -> Result<Cut, String> {
    plain(cut, options)?;
    let (k, length) = (options.k, vector.length);
    let exponent = match options.subrange {
        Subrange::Auto => options.tuning.grouped(length / k),
        _ => cut.exponent,
    };
    let cut = Cut {
        exponent,
        ..cut.clone()
    };
    let blueprint = blueprint(vector, &cut, options).map_err(|error| error.to_string())?;
    let find = DelegateBlueprint::new(vector, &cut, CUBE_UNITS, options.largest);
    let delegates = cut.delegates(length);
    let most = HELD_BYTES / vector.key * blueprint.shape.lanes as usize;
    // As many groups as delegates of the best ones; no more rounds than needed, so that the last cubes do not keep others waiting.
    let balanced = (delegates / k).max(1).ilog2().div_ceil(2);
    let least = (delegates.div_ceil(most))
        .next_power_of_two()
        .max(find.teams());
    let group = balanced.min(find.taken().ilog2()).max(least.ilog2());
    let count = delegates.div_ceil(1 << group);
    if count < k || k << group > most {
        return Err(format!(
            "{delegates} delegates in groups of {}; k = {k} of them are chosen, and a cube holds {most} delegates",
            1 << group
        ));
    }
    let find = find
        .taking(exponent, 1 << group)
        .ok_or_else(|| format!("subranges of 2^{exponent} take several loads after another"))?;
    let items = |count| holding(&blueprint, count, vector.key).ok_or("too many delegates");
    let blueprint = FinishBlueprint {
        items: items(count)?,
        grouped: items(k << group)?,
        group,
        ..blueprint
    };
    Ok(Cut {
        last: Last::Finish(blueprint, Way::Groups(find)),
        ..cut
    })
}

/// The cube that finds k members in chosen subranges.
fn blueprint(
    vector: &Vector,
    cut: &Cut,
    options: &VectorOptions,
) -> Result<FinishBlueprint, KernelError> {
    let (client, k) = (vector.client, options.k);
    let refuse = |reason: String| Err(refused("filter", reason));
    if is_llvmpipe(client) {
        return refuse(LLVMPIPE_REFUSAL.into());
    }
    if k > MEMBERS {
        return refuse(format!("k = {k}; one cube finds at most {MEMBERS} members"));
    }
    if k << cut.exponent > 1 << 31 || cut.delegates(vector.length) > 1 << 31 {
        return refuse("more than 2^31 delegates or elements of subranges".into());
    }
    let plane = plane_or_unit(client);
    // Without planes, every unit reads what every other one has.
    let wanted = if plane > 1 { UNITS } else { CUBE_UNITS };
    let units = units_per_cube(client, wanted.max(plane));
    let width = width(vector, cut.exponent);
    let blueprint = FinishBlueprint {
        shape: Shape {
            width,
            ..Shape::of_cube(units, plane)
        },
        items: 0,
        group: 0,
        grouped: 0,
        delegates: cut.per_subrange as u32,
        flight: ((k << cut.exponent) / (width * units as usize)).clamp(1, FLIGHT),
        members: k.next_power_of_two().max(32),
        room: ROOM,
        spacing: spacing(vector.dtype),
        largest: options.largest,
    };
    let (needed, limit) = (
        blueprint.shared(vector.key),
        client.properties().hardware.max_shared_memory_size,
    );
    if needed > limit {
        return refuse(format!(
            "{needed} bytes of shared memory; there are {limit}"
        ));
    }
    Ok(blueprint)
}

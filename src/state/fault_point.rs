//! The one way for a backend to look at its fault points. Without the feature `testing` it is `Ok(())`, and the field that it names need not exist.

#[cfg(feature = "testing")]
macro_rules! fault_point {
    ($faults:expr, $point:ident) => {
        $faults.reach($crate::testing::FaultPoint::$point).map_err(|point| $crate::state::StoreError::Injected { point })
    };
}

#[cfg(not(feature = "testing"))]
macro_rules! fault_point {
    ($faults:expr, $point:ident) => {
        Ok::<(), $crate::state::StoreError>(())
    };
}

pub(super) use fault_point;

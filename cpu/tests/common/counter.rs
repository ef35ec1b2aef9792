//! Counter-based events.

use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::extensions;

/// A counter-based event, and its pool.
pub fn counter_event(
    library: &sys::Library,
    context: sys::ze_context_handle_t,
) -> (sys::ze_event_handle_t, sys::ze_event_pool_handle_t) {
    let counter = extensions::ze_event_pool_counter_based_exp_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC,
        pNext: ptr::null(),
        flags: 1,
    };
    let pool_desc = sys::ze_event_pool_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
        pNext: (&raw const counter).cast(),
        count: 1,
        flags: sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0,
    };
    let desc = sys::ze_event_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_DESC,
        ..Default::default()
    };
    let (mut pool, mut event) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the context is alive, and the pointers are to live locals.
    unsafe {
        let create_pool = library.zeEventPoolCreate.unwrap();
        let created = create_pool(
            context,
            &raw const pool_desc,
            0,
            ptr::null_mut(),
            &raw mut pool,
        );
        assert_eq!(created, sys::ZE_RESULT_SUCCESS);
        let created = library.zeEventCreate.unwrap()(pool, &raw const desc, &raw mut event);
        assert_eq!(created, sys::ZE_RESULT_SUCCESS);
    }
    (event, pool)
}

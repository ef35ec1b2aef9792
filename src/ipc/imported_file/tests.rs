#![allow(clippy::unwrap_used)]

use super::*;
use crate::Runtime;

#[test]
fn a_dropped_mapping_is_used_again_in_its_context_only() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let contexts = [(); 2].map(|()| Context::new(device.driver()).unwrap());
    let [memory, other] = [1, 2].map(|id| ([0xa5; 16], id, [0; 60]));
    let mut file = File::default();
    file.dropped.push(DroppedMapping {
        memory,
        context: contexts[0].clone(),
        pointer: 4096,
    });
    assert_eq!(file.take(&memory, &contexts[1]), None);
    assert_eq!(file.take(&other, &contexts[0]), None);
    assert_eq!(file.take(&memory, &contexts[0]), Some(4096));
    assert_eq!(file.take(&memory, &contexts[0]), None);
}

#[test]
fn the_mappings_of_a_file_are_closed_together() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let file = FileId::of(std::io::stdin()).unwrap();
    let place = (file, [7; 16]);
    let key = Some(place);
    let memory = |id| ([0xa5; 16], id, [0; 60]);
    let dropped = |id, pointer| DroppedMapping {
        memory: memory(id),
        context: context.clone(),
        pointer,
    };
    let mut files = ImportedFiles::default();
    let opened = [(1, 4096), (2, 8192)].map(|(id, pointer)| {
        files
            .map(key, &memory(id), &context, || Ok(pointer))
            .unwrap()
    });
    assert_eq!(opened, [4096, 8192]);
    files.unmap(key, dropped(1, 4096));
    assert_eq!(files.0[&place].dropped.len(), 1);
    // It is in use again, without a call of the driver.
    let again = files.map(key, &memory(1), &context, || panic!("it is still mapped"));
    assert_eq!(again.unwrap(), 4096);
    files.unmap(key, dropped(2, 8192));
    files.unmap(key, dropped(1, 4096));
    assert!(files.0.is_empty());
}

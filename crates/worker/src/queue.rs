//! A queue with a limit on the sum of the sizes of its items. The owner decides what a size is: one, or a number of
//! bytes.

use std::collections::VecDeque;

/// A queue with a limit on the sum of the sizes of its items.
#[derive(Debug)]
pub struct BoundedQueue<T> {
    items: VecDeque<(T, usize)>,
    size: usize,
    max_size: usize,
}

impl<T> BoundedQueue<T> {
    /// Creates an empty queue.
    pub fn new(max_size: usize) -> Self {
        Self { items: VecDeque::new(), size: 0, max_size }
    }

    /// Appends an item. Returns it if it does not fit.
    pub fn push(&mut self, item: T, size: usize) -> Result<(), T> {
        if self.size.saturating_add(size) > self.max_size {
            return Err(item);
        }
        self.append(item, size);
        Ok(())
    }

    /// Appends an item, and removes items from the front until the rest fits. Returns what was removed. An item that is larger
    /// than the whole queue is removed too.
    pub fn push_evicting(&mut self, item: T, size: usize) -> Vec<T> {
        self.append(item, size);
        let mut removed = Vec::new();
        while self.size > self.max_size
            && let Some((first, _)) = self.pop()
        {
            removed.push(first);
        }
        removed
    }

    /// Removes items from the front: at most `max_items`, and stops once the sum of their sizes has reached
    /// `target_size`. Returns them and that sum.
    pub fn take(&mut self, max_items: usize, target_size: usize) -> (Vec<T>, usize) {
        let (mut taken, mut sum) = (Vec::new(), 0);
        while taken.len() < max_items
            && sum < target_size
            && let Some((item, size)) = self.pop()
        {
            taken.push(item);
            sum += size;
        }
        (taken, sum)
    }

    /// Removes the first item if a condition is true for it.
    pub fn pop_front_if(&mut self, condition: impl FnOnce(&T) -> bool) -> Option<T> {
        let (item, _) = self.items.front()?;
        if condition(item) { self.pop().map(|(item, _)| item) } else { None }
    }

    /// Returns the items, from the front to the back.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|(item, _)| item)
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the sum of the sizes.
    pub fn size(&self) -> usize {
        self.size
    }

    fn append(&mut self, item: T, size: usize) {
        self.items.push_back((item, size));
        self.size += size;
    }

    fn pop(&mut self) -> Option<(T, usize)> {
        let (item, size) = self.items.pop_front()?;
        self.size -= size;
        Some((item, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(sizes: &[usize]) -> BoundedQueue<usize> {
        let mut queue = BoundedQueue::new(10);
        for size in sizes {
            queue.push(*size, *size).unwrap();
        }
        queue
    }

    #[test]
    fn returns_item_that_does_not_fit() {
        let mut queue = filled(&[4, 6]);
        assert_eq!(queue.push(1, 1), Err(1));
        queue.push(0, 0).unwrap();
        assert_eq!((queue.len(), queue.size()), (3, 10));
    }

    #[test]
    fn evicts_first_items() {
        let mut queue = filled(&[3, 3, 4]);
        assert_eq!(queue.push_evicting(5, 5), [3, 3]);
        assert_eq!((queue.iter().copied().collect::<Vec<_>>(), queue.size()), (vec![4, 5], 9));
        assert_eq!(queue.push_evicting(11, 11), [4, 5, 11], "it does not fit at all");
        assert!(queue.is_empty() && queue.size() == 0);
    }

    #[test]
    fn batch_is_limited_by_number_and_size() {
        assert_eq!(filled(&[1, 2, 3]).take(2, usize::MAX), (vec![1, 2], 3));
        assert_eq!(filled(&[1, 2, 3]).take(usize::MAX, 2), (vec![1, 2], 3), "the last one may exceed it");
        let mut queue = filled(&[1, 2, 3]);
        assert_eq!(queue.take(usize::MAX, usize::MAX), (vec![1, 2, 3], 6));
        assert_eq!((queue.take(1, 1), queue.size()), ((vec![], 0), 0));
    }

    #[test]
    fn pops_first_item_only_if_condition_is_true() {
        let mut queue = filled(&[1, 2]);
        assert_eq!(queue.pop_front_if(|item| *item == 2), None);
        assert_eq!(queue.pop_front_if(|item| *item == 1), Some(1));
        assert_eq!((queue.len(), queue.size()), (1, 2));
    }
}

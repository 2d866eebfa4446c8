// The keys of the page of a mailbox. What they do is done by the list and by the page.

/** @import { Shortcut } from '../lib/keys.js' */
/** @import { MessageList } from './message-list.js' */

/**
 * What the page does itself.
 * @typedef {object} Acts
 * @property {(by: number, isExtending: boolean) => void} step To another message.
 * @property {() => void} enter Into the message.
 * @property {() => void} back One step back.
 * @property {() => void} unread
 * @property {() => void} remove
 * @property {() => void} undo
 */

/**
 * @param {MessageList} list
 * @param {Acts} acts
 * @returns {Shortcut[]}
 */
export function mailboxKeys(list, { step, enter, back, unread, remove, undo }) {
  const group = 'Mailbox';
  const toggle = () => list.current !== null && list.toggle(list.current);
  /** @type {Shortcut[]} */
  const keys = [
    { keys: ['j', 'ArrowDown'], group, label: 'The next message', when: moves, run: ({ shiftKey }) => step(1, shiftKey) },
    { keys: ['k', 'ArrowUp'], group, label: 'The message before', when: moves, run: ({ shiftKey }) => step(-1, shiftKey) },
    { keys: ['J', 'K'], group, label: 'The same, selecting on the way', run: ({ key }) => step(key === 'J' ? 1 : -1, true) },
    { keys: ['Enter'], group, label: 'Into the message', when: inList, run: enter },
    { keys: ['Escape'], group, label: 'Back: to the list, select none, clear the filter', run: back },
    { keys: ['/'], group, label: 'Filter', run: () => list.focusFilter() },
    { keys: ['u'], group, label: 'Mark as unread', once: true, run: unread },
    { keys: ['x'], group, label: 'Select the message, or not', once: true, run: toggle },
    { keys: ['* a'], group, label: 'Select all', run: () => list.selectAll() },
    { keys: ['Delete', '#'], group, label: 'Delete the message, or those selected', run: remove },
    { keys: ['z'], group, label: 'Bring back what was just deleted', once: true, run: undo },
  ];
  return keys;
}

/**
 * In the message, and on the divider, some keys have their own meaning.
 * @param {KeyboardEvent} event
 */
const inList = ({ target }) => !(target instanceof Element && target.closest('message-pane, pane-divider'));

/** @param {KeyboardEvent} event */
const moves = (event) => !event.key.startsWith('Arrow') || inList(event);

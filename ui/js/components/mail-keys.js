// The keyboard shortcuts of a list of messages. The actions are in the list and in the page.

/** @import { Shortcut } from '../lib/keys.js' */
/** @import { MessageList } from './message-list.js' */

/**
 * The actions of the page.
 * @typedef {object} Actions
 * @property {(by: number, isExtending: boolean) => void} step Moves to another message.
 * @property {() => void} enter Moves the focus into the message.
 * @property {() => void} back Goes one step back.
 * @property {() => void} unread
 * @property {() => void} remove
 * @property {() => void} undo
 * @property {() => void} pause
 * @property {() => boolean} isActive False while the list is replaced or covered.
 */

/**
 * @param {MessageList} list
 * @param {Actions} actions
 * @returns {Shortcut[]}
 */
export function mailKeys(list, { step, enter, back, unread, remove, undo, pause, isActive }) {
  const group = 'Messages';
  const toggle = () => list.current !== null && list.toggle(list.current);
  /** @type {Shortcut[]} */
  const keys = [
    { keys: ['j', 'ArrowDown'], group, label: 'Next message', when: moves, run: ({ shiftKey }) => step(1, shiftKey) },
    { keys: ['k', 'ArrowUp'], group, label: 'Previous message', when: moves, run: ({ shiftKey }) => step(-1, shiftKey) },
    { keys: ['J', 'K'], group, label: 'Next or previous message, and select', run: ({ key }) => step(key === 'J' ? 1 : -1, true) },
    { keys: ['Enter'], group, label: 'Go to the message', when: inList, run: enter },
    { keys: ['Escape'], group, label: 'Back to the list, clear the selection, close the message', run: back },
    { keys: ['u'], group, label: 'Mark as unread', once: true, run: unread },
    { keys: ['x'], group, label: 'Select or deselect the message', once: true, run: toggle },
    { keys: ['* a'], group, label: 'Select all', run: () => list.selectAll() },
    { keys: ['Delete', '#'], group, label: 'Delete the message or the selected messages', run: remove },
    { keys: ['z'], group, label: 'Undo the last deletion', once: true, run: undo },
    { keys: ['p'], group, label: 'Pause or resume the list', once: true, run: pause },
  ];
  return keys.map((shortcut) => ({ ...shortcut, when: (event) => isActive() && (shortcut.when?.(event) ?? true) }));
}

/**
 * In the message, in the sidebar and on the divider, some keys have another meaning.
 * @param {KeyboardEvent} event
 */
const inList = ({ target }) => !(target instanceof Element && target.closest('message-pane, pane-divider, mailbox-sidebar'));

/** @param {KeyboardEvent} event */
const moves = (event) => !event.key.startsWith('Arrow') || inList(event);

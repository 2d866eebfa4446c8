// Talking to the reader: a short notice that goes away by itself, and a question that waits for an answer.

import { fill, find, h } from './dom.js';
import { icon } from './icons.js';
import { visible } from './visible.js';

const SHORT = 4_000;
/** How long a notice stays after the reader has turned away from it. */
const SHORTEST = 1_000;

/** @typedef {{ close(): void }} Toast */

/**
 * Shows a notice; with an action, for as long as that can still be taken. While the reader points at it, or is in it,
 * its time stands still.
 * @param {string} text
 * @param {{ action?: { label: string, key?: string, run(): void }, bad?: boolean, millis?: number, over?: () => void }} [how]
 *   `over` is called when its time is over, or when the reader sends it away.
 * @returns {Toast}
 */
export function toast(text, { action, bad = false, millis = bad ? 2 * SHORT : SHORT, over } = {}) {
  const element = h('div', { class: bad ? 'toast bad' : 'toast', role: bad ? 'alert' : null }, h('bdi', {}, visible(text)));
  const close = () => {
    clock.stop();
    const hadFocus = element.contains(document.activeElement);
    element.remove();
    if (hadFocus && before?.isConnected) before.focus();
  };
  const end = () => {
    close();
    over?.();
  };
  const act = () => {
    close();
    action?.run();
  };
  const clock = stopwatch(millis, end);
  /** @type {HTMLElement | null} Where the focus came from. */
  let before = null;
  const look = () => (element.matches(':hover, :focus-within') ? clock.stop() : clock.start());
  for (const name of ['pointerenter', 'pointerleave', 'focusin', 'focusout']) element.addEventListener(name, look);
  element.addEventListener('focusin', ({ relatedTarget }) => {
    if (relatedTarget instanceof HTMLElement && !element.contains(relatedTarget)) before = relatedTarget;
  });

  if (action) {
    const key = action.key && h('kbd', { 'aria-hidden': 'true' }, action.key);
    element.append(h('button', { class: 'button', type: 'button', 'aria-keyshortcuts': action.key, onclick: act }, action.label, key));
  }
  element.append(h('button', { class: 'button', type: 'button', 'aria-label': 'Dismiss', onclick: end }, icon('close')));
  place().append(element);
  clock.start();
  return { close };
}

/**
 * Says something to those only who cannot see that it happened.
 * @param {string} text
 */
export function say(text) {
  const element = h('span', { class: 'hidden' }, text);
  place().append(element);
  setTimeout(() => element.remove(), SHORT);
}

const place = () => find(document, '#toasts', HTMLElement);

/**
 * A clock that can be stopped and goes on from there, at the end for a moment at least.
 * @param {number} millis
 * @param {() => void} end
 */
function stopwatch(millis, end) {
  let [left, since] = [millis, 0];
  /** @type {number | undefined} */
  let timer;
  const stop = () => {
    if (timer === undefined) return;
    clearTimeout(timer);
    timer = undefined;
    left = Math.max(SHORTEST, left - (performance.now() - since));
  };
  const start = () => {
    if (timer !== undefined) return;
    since = performance.now();
    timer = window.setTimeout(end, left);
  };
  return { start, stop };
}

/**
 * Asks once. The answer that changes nothing has the focus.
 * @param {{ title: string, text: string, yes: string, danger?: boolean }} question
 * @returns {Promise<boolean>}
 */
export function ask({ title, text, yes, danger = false }) {
  const no = h('button', { class: 'button', value: 'no', autofocus: true }, 'Cancel');
  const go = h('button', { class: danger ? 'button main danger' : 'button main', value: 'yes' }, yes);
  const dialog = show(title, h('p', {}, h('bdi', {}, visible(text))), h('div', { class: 'row' }, no, go));
  return new Promise((answer) => dialog.addEventListener('close', () => answer(dialog.returnValue === 'yes')));
}

/**
 * Opens a dialog over the page; Escape, a button inside, a click beside it and leaving the page close it.
 * @param {string} title
 * @param {...Node} content
 */
export function show(title, ...content) {
  const form = h('form', { method: 'dialog' });
  const dialog = h('dialog', { class: 'ask', 'aria-label': visible(title) }, form);
  fill(form, h('h2', {}, h('bdi', {}, visible(title))), ...content);
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Closes whatever is asked: a question about a page shall not outlive it. */
export function hush() {
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
}

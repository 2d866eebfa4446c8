// Feedback to the user: toasts, announcements for screen readers, and dialogs.

import { fill, find, h } from './dom.js';
import { icon } from './icons.js';
import { visible } from './visible.js';

const TOAST_MS = 4_000;
/** The minimum time that a toast stays after the pointer or the focus has left it. */
const MIN_REMAINING_MS = 1_000;

/** @typedef {{ close(): void }} Toast */

/**
 * Shows a toast. Its timer is paused while the pointer is over it or the focus is in it.
 * @param {string} text
 * @param {{ action?: { label: string, key?: string, run(): void }, bad?: boolean, millis?: number, onEnd?: () => void }} [options]
 *   `onEnd` is called when the time is over or the user dismisses the toast, but not after the action.
 * @returns {Toast}
 */
export function toast(text, { action, bad = false, millis = bad ? 2 * TOAST_MS : TOAST_MS, onEnd } = {}) {
  const element = h('div', { class: bad ? 'toast bad' : 'toast', role: bad ? 'alert' : null }, h('bdi', {}, visible(text)));
  const close = () => {
    timer.stop();
    const hadFocus = element.contains(document.activeElement);
    element.remove();
    if (hadFocus && previousFocus?.isConnected) previousFocus.focus();
  };
  const end = () => {
    close();
    onEnd?.();
  };
  const act = () => {
    close();
    action?.run();
  };
  const timer = pausableTimer(millis, end);
  /** @type {HTMLElement | null} The element that had the focus before the toast. */
  let previousFocus = null;
  const updateTimer = () => (element.matches(':hover, :focus-within') ? timer.stop() : timer.start());
  for (const name of ['pointerenter', 'pointerleave', 'focusin', 'focusout']) element.addEventListener(name, updateTimer);
  element.addEventListener('focusin', ({ relatedTarget }) => {
    if (relatedTarget instanceof HTMLElement && !element.contains(relatedTarget)) previousFocus = relatedTarget;
  });

  if (action) {
    const key = action.key && h('kbd', { 'aria-hidden': 'true' }, action.key);
    element.append(h('button', { class: 'button', type: 'button', 'aria-keyshortcuts': action.key, onclick: act }, action.label, key));
  }
  element.append(h('button', { class: 'button', type: 'button', 'aria-label': 'Dismiss', onclick: end }, icon('close')));
  container().append(element);
  timer.start();
  return { close };
}

/**
 * Announces a text to screen readers only.
 * @param {string} text
 */
export function announce(text) {
  const element = h('span', { class: 'hidden' }, text);
  container().append(element);
  setTimeout(() => element.remove(), TOAST_MS);
}

const container = () => find(document, '#toasts', HTMLElement);

/**
 * A timer that can be stopped and continues with the remaining time, at least `MIN_REMAINING_MS`.
 * @param {number} millis
 * @param {() => void} end
 */
function pausableTimer(millis, end) {
  let [remaining, startedAt] = [millis, 0];
  /** @type {number | undefined} */
  let timer;
  const stop = () => {
    if (timer === undefined) return;
    clearTimeout(timer);
    timer = undefined;
    remaining = Math.max(MIN_REMAINING_MS, remaining - (performance.now() - startedAt));
  };
  const start = () => {
    if (timer !== undefined) return;
    startedAt = performance.now();
    timer = window.setTimeout(end, remaining);
  };
  return { start, stop };
}

/**
 * Asks for a confirmation. The focus is on the button that changes nothing.
 * @param {{ title: string, text: string, action: string, dismiss?: string, danger?: boolean }} question `action` and `dismiss` are the labels of the buttons.
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, action, dismiss = 'Cancel', danger = false }) {
  const no = h('button', { class: 'button', value: 'no', autofocus: true }, dismiss);
  const yes = h('button', { class: danger ? 'button main danger' : 'button main', value: 'yes' }, action);
  const dialog = openDialog(title, h('p', {}, h('bdi', {}, visible(text))), h('div', { class: 'row' }, no, yes));
  return new Promise((resolve) => dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes')));
}

/**
 * Asks for a text. If `run` throws, the dialog shows the error and stays open.
 * @param {{ title: string, label: string, value: string, maxLength: number, action: string, run(text: string): unknown }} question `action` is the label of the button.
 */
export function ask({ title, label, value, maxLength, action, run }) {
  const input = h('input', { class: 'field', type: 'text', value, maxlength: maxLength, required: true, autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  let isRunning = false;
  const cancel = h('button', { class: 'button', type: 'button', onclick: () => dialog.close() }, 'Cancel');
  const dialog = openDialog(title, h('label', { class: 'ask' }, label, input), problem, h('div', { class: 'row' }, cancel, h('button', { class: 'button main', type: 'submit' }, action)));
  find(dialog, 'form', HTMLFormElement).addEventListener('submit', async (event) => {
    event.preventDefault();
    if (isRunning) return;
    isRunning = true;
    try {
      const text = input.value.trim();
      if (text === '') throw new Error('Enter a name.');
      await run(text);
      dialog.close();
    } catch (error) {
      problem.textContent = error instanceof Error ? visible(error.message) : String(error);
      problem.hidden = false;
    } finally {
      isRunning = false;
    }
  });
  input.select();
}

/**
 * Opens a modal dialog. Escape, a button in it, a click outside of it, and navigation close it. Escape and a click outside dispatch
 * `cancel` before.
 * @param {string} title
 * @param {...Node} content
 */
export function openDialog(title, ...content) {
  const form = h('form', { method: 'dialog' });
  const dialog = h('dialog', { class: 'modal', 'aria-label': visible(title) }, form);
  fill(form, h('h2', {}, h('bdi', {}, visible(title))), ...content);
  // A selection of text can end outside of the dialog.
  let isPressedOutside = false;
  dialog.addEventListener('pointerdown', ({ target }) => (isPressedOutside = target === dialog));
  const cancel = () => dialog.dispatchEvent(new Event('cancel', { cancelable: true })) && dialog.close();
  dialog.addEventListener('click', ({ target }) => target === dialog && isPressedOutside && cancel());
  // The browser can close several dialogs at once, without a `cancel` that can be prevented.
  dialog.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.isComposing || event.defaultPrevented) return;
    event.preventDefault();
    cancel();
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Closes all dialogs: a question about a page ends with the page. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
}

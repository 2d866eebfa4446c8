// Talking to the reader: a short notice that goes away by itself, and a question that waits for an answer.

import { fill, find, h } from './dom.js';
import { icon } from './icons.js';

const SHORT = 4_000;

/** @typedef {{ close(): void }} Toast */

/**
 * Shows a notice; with an action, for as long as that can still be taken.
 * @param {string} text
 * @param {{ action?: { label: string, run(): void }, bad?: boolean, millis?: number }} [how]
 * @returns {Toast}
 */
export function toast(text, { action, bad = false, millis = bad ? 2 * SHORT : SHORT } = {}) {
  const element = h('div', { class: bad ? 'toast bad' : 'toast', role: bad ? 'alert' : null }, h('span', {}, text));
  const close = () => {
    clearTimeout(timer);
    element.remove();
  };
  const timer = setTimeout(close, millis);
  const act = action && (() => {
    close();
    action.run();
  });
  if (action && act) element.append(h('button', { class: 'button', type: 'button', onclick: act }, action.label));
  element.append(h('button', { class: 'button', type: 'button', 'aria-label': 'Dismiss', onclick: close }, icon('close')));
  find(document, '#toasts', HTMLElement).append(element);
  return { close };
}

/**
 * Asks once. The answer that changes nothing has the focus.
 * @param {{ title: string, text: string, yes: string, danger?: boolean }} question
 * @returns {Promise<boolean>}
 */
export function ask({ title, text, yes, danger = false }) {
  const no = h('button', { class: 'button', value: 'no', autofocus: true }, 'Cancel');
  const go = h('button', { class: danger ? 'button main danger' : 'button main', value: 'yes' }, yes);
  const dialog = show(title, h('p', {}, text), h('div', { class: 'row' }, no, go));
  return new Promise((answer) => dialog.addEventListener('close', () => answer(dialog.returnValue === 'yes')));
}

/**
 * Opens a dialog over the page; Escape, a button inside and a click beside it close it.
 * @param {string} title
 * @param {...Node} content
 */
export function show(title, ...content) {
  const form = h('form', { method: 'dialog' });
  const dialog = h('dialog', { class: 'ask', 'aria-label': title }, form);
  fill(form, h('h2', {}, title), ...content);
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

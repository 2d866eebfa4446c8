// The dialog that composes a message and adds it to the mailboxes of its recipients.

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import * as prefs from '../lib/prefs.js';
import { fill, find, h, set } from '../lib/dom.js';
import { confirm, openDialog, toast } from '../lib/feedback.js';
import { address, plural, size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { splitAddresses } from '../lib/relay-recipients.js';
import { go } from '../lib/router.js';
import { RECIPIENT } from '../lib/snippets.js';
import { visible } from '../lib/visible.js';

/**
 * Creates a button that opens the dialog.
 * @param {string} [to]
 */
export function composeButton(to) {
  return h('button', { class: 'button compose', type: 'button', onclick: () => openComposeDialog(to) }, icon('send'), 'Compose a message');
}

/** @param {string} [to] The recipients that the dialog proposes. */
export function openComposeDialog(to = prefs.recent()[0] ?? RECIPIENT) {
  const from = h('input', { class: 'field', name: 'from', type: 'text', value: 'Test <test@example.org>', autocomplete: 'off', spellcheck: 'false' });
  const recipients = h('input', { class: 'field', name: 'to', type: 'text', value: to, autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false' });
  const subject = h('input', { class: 'field', name: 'subject', type: 'text', value: 'Test message', autocomplete: 'off' });
  const text = h('textarea', { class: 'field', name: 'text', rows: 5 }, 'Hello!\n\nYour code is 482913.\n');
  const html = h('textarea', { class: 'field mono', name: 'html', rows: 5, spellcheck: 'false' });
  const files = h('ul', { class: 'compose-files' });
  const picker = h('input', { class: 'hidden', type: 'file', multiple: true, 'aria-label': 'Attach files', tabindex: -1, onchange: () => attach() });
  const problem = h('div', { class: 'compose-problem' });
  const send = h('button', { class: 'button main', type: 'submit' }, 'Send');

  /** @type {File[]} */
  let attached = [];
  const attach = () => {
    attached = [...attached, ...(picker.files ?? [])];
    picker.value = '';
    drawFiles();
  };
  const drawFiles = () => fill(files, attached.map((file) => h('li', { class: 'badge' }, h('bdi', { class: 'truncate' }, visible(file.name)), ` ${size(file.size)}`,
    h('button', { type: 'button', 'aria-label': `Remove ${visible(file.name)}`, onclick: () => {
      attached = attached.filter((other) => other !== file);
      drawFiles();
      attachButton.focus();
    } }, icon('close')))));
  const attachButton = h('button', { class: 'button', type: 'button', onclick: () => picker.click() }, icon('attachment'), 'Attach files');

  /** The recipients that have the message already, and where it was stored: a second attempt omits them. @type {Set<string>} */
  const done = new Set();
  /** @type {{ mailbox: string, id: string }[]} */
  const stored = [];
  let isSending = false;
  const submit = async () => {
    const all = splitAddresses(recipients.value);
    if (isSending) return;
    if (all.length === 0) {
      fill(problem, alert('Enter at least one recipient.'));
      recipients.focus();
      return;
    }
    isSending = true;
    set(send, { 'aria-disabled': 'true' });
    fill(problem);
    try {
      const mail = { from: from.value, to: all, subject: subject.value, text: text.value || undefined, html: html.value || undefined, attachments: await Promise.all(attached.map(encode)) };
      for (const name of all.map((one) => address(one).address)) {
        const key = name.toLowerCase();
        if (done.has(key)) continue;
        stored.push(...(await api.send(name, mail)).messages);
        done.add(key);
      }
      dialog.close();
      report(stored);
    } catch (error) {
      if (dialog.isConnected) fill(problem, alert(api.sentence(error)));
      else toast(api.sentence(error), { bad: true });
    } finally {
      isSending = false;
      set(send, { 'aria-disabled': null });
    }
  };

  let isAsking = false;
  const isChanged = () => attached.length > 0 || [from, recipients, subject, text, html].some((field) => field.value !== field.defaultValue);
  const askToDiscard = async (/** @type {Event} */ event) => {
    if (!isChanged()) return;
    event.preventDefault();
    if (isAsking) return;
    isAsking = true;
    if (await confirm({ title: 'Discard the message?', text: 'The message was not sent.', action: 'Discard', dismiss: 'Keep editing', danger: true })) dialog.close();
    isAsking = false;
  };

  const dialog = openDialog('Compose a message',
    h('p', { class: 'soft' }, 'The message is stored on this server as if it had arrived by SMTP. It is not sent to other servers.'),
    labelled('From', from), labelled('To, separated by commas', recipients), labelled('Subject', subject), labelled('Text', text), labelled('HTML (optional)', html),
    files, problem,
    h('div', { class: 'row' }, attachButton, picker, h('span', { class: 'spread' }), h('button', { class: 'button', type: 'button', onclick: () => dialog.close() }, 'Cancel'), send));
  dialog.classList.add('compose-dialog');
  dialog.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit();
  });
  // The event of the file picker bubbles.
  dialog.addEventListener('cancel', (event) => event.target === dialog && askToDiscard(event));
  find(dialog, 'form', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
  recipients.select();
}

/** @param {{ mailbox: string, id: string }[]} stored A rule can discard a message, and a script can redirect it. */
function report(stored) {
  const [first] = stored;
  if (!first) {
    toast('The message was accepted, but not stored. Check the rules and the script of the server.');
    return;
  }
  const place = stored.length === 1 ? `the mailbox ${visible(first.mailbox)}` : plural(stored.length, 'mailbox', 'mailboxes');
  toast(`The message was stored in ${place}.`, { action: { label: 'Open', run: () => go(paths.mailbox(first.mailbox, first.id)) } });
}

/**
 * Returns a file as an attachment in a request.
 * @param {File} file
 * @returns {Promise<{ filename: string, 'content-type'?: string, content: string }>}
 */
function encode(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ filename: file.name, 'content-type': file.type || undefined, content: String(reader.result).replace(/^[^,]*,/u, '') });
    reader.onerror = () => reject(new Error(`The file ${visible(file.name)} could not be read.`));
    reader.readAsDataURL(file);
  });
}

/**
 * @param {string} name
 * @param {HTMLElement} field
 */
const labelled = (name, field) => h('label', {}, h('span', {}, name), field);

/** @param {string} text */
const alert = (text) => h('p', { class: 'note bad', role: 'alert' }, icon('warning'), h('bdi', {}, visible(text)));

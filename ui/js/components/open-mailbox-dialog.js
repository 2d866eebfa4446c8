// A dialog with a field that opens a mailbox.

import { find, h } from '../lib/dom.js';
import { openDialog } from '../lib/feedback.js';
import { icon } from '../lib/icons.js';
import { setUpMailboxField } from '../lib/mailbox-field.js';

export function openMailboxDialog() {
  const input = h('input', { class: 'field', id: 'open-mailbox-name', type: 'text', 'aria-label': 'Name or address', placeholder: 'Name or address', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', enterkeyhint: 'go' });
  const close = h('button', { class: 'button plain dialog-close', type: 'button', 'aria-label': 'Close', title: 'Close (Esc)', onclick: () => dialog.close() }, icon('close'));
  const line = h('div', { class: 'open-line' }, input, h('button', { class: 'button main', type: 'submit' }, 'Open'));
  const dialog = openDialog('Open a mailbox', close, line);
  dialog.classList.add('open-dialog');
  setUpMailboxField(find(dialog, 'form', HTMLFormElement), input, { beforeOpen: () => dialog.close(), isInline: true });
  // The list has its own line below the field.
  const list = find(line, '[role=listbox]', HTMLElement);
  line.after(list);
  input.focus();
}

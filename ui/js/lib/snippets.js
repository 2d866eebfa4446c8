// Configuration snippets for sending messages to this server, one per tool, framework or API of a mail provider. The display is in
// `send-here.js`.

/** @import { Server } from '../types.js' */

import * as paths from './paths.js';

/**
 * The address and options of the SMTP server.
 * @typedef {object} Target
 * @property {string} host Without the brackets of an IPv6 address in a URL.
 * @property {number} port
 * @property {'off' | 'implicit'} tls What a client must use; optional STARTTLS counts as `off`.
 * @property {boolean} auth True if a login is required.
 * @property {string} recipient An address that needs no quoting.
 * @property {string} url The root of the APIs of mail providers, without a trailing slash.
 * @property {string} key An API key. Without logins, any key is accepted.
 */

/** @typedef {{ id: string, name: string, context: string, isHttp?: boolean, code: (to: Target) => string }} Snippet */

/** The default SMTP port. */
export const DEFAULT_PORT = 2500;
const SENDER = 'app@example.org';
export const RECIPIENT = 'test@example.org';

/** Returns the host of the server, and the URL of its root. In a project, that is the root of the project. */
export const serverPlace = () => ({ hostname: location.hostname, root: location.origin + paths.inbox() });

/**
 * @param {ReturnType<typeof serverPlace>} place
 * @param {Server | null} server Null if the request failed.
 * @param {string} [recipient]
 * @returns {Target}
 */
export function target({ hostname, root }, server, recipient = RECIPIENT) {
  const smtp = server?.smtp;
  const tls = smtp?.tls === 'implicit' ? 'implicit' : 'off';
  const host = hostname.replace(/^\[|\]$/gu, '');
  const [url, key] = [root.replace(/\/$/u, ''), server?.locked ? 'TOKEN' : 'any-key'];
  return { host, port: smtp?.port ?? DEFAULT_PORT, tls, auth: smtp?.['auth-required'] ?? false, recipient, url, key };
}

/**
 * Returns whether a host is the local machine.
 * @param {string} host
 */
export const isLocal = (host) => /^(localhost|127\.[\d.]+|\[?::1\]?)$/u.test(host);

/**
 * Returns the mailbox of the recipient in the snippets.
 * @param {Server['mailbox-naming']} naming
 */
export function mailboxOf(naming) {
  const [local, domain] = RECIPIENT.split('@');
  return { local, domain, full: RECIPIENT }[naming] ?? local;
}

/** @param {Target} to */
const inUrl = ({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/**
 * Joins lines and omits those that are `false`.
 * @param {...(string | false)} texts
 */
const lines = (...texts) => texts.filter((text) => text !== false).join('\n');

/** @type {{ name: string, snippets: Snippet[] }[]} */
export const GROUPS = [
  {
    name: 'Command line',
    snippets: [
      {
        id: 'swaks',
        name: 'swaks',
        context: 'Shell',
        code: (to) => [
          `swaks --server ${to.host} --port ${to.port}`,
          `--from ${SENDER} --to ${to.recipient}`,
          to.tls === 'implicit' && '--tls-on-connect',
          to.auth && '--auth PLAIN --auth-user USER --auth-password PASSWORD',
          '--header "Subject: Hello" --body "It works."',
        ].filter(Boolean).join(' \\\n  '),
      },
      {
        id: 'curl',
        name: 'curl',
        context: 'Shell',
        code: (to) => lines(
          `curl ${to.tls === 'implicit' ? 'smtps' : 'smtp'}://${inUrl(to)} --crlf \\`,
          to.auth && '  --user USER:PASSWORD \\',
          `  --mail-from ${SENDER} --mail-rcpt ${to.recipient} \\`,
          '  --upload-file - <<MAIL',
          `From: ${SENDER}`,
          `To: ${to.recipient}`,
          'Subject: Hello',
          '',
          'It works.',
          'MAIL',
        ),
      },
      {
        id: 'msmtp',
        name: 'sendmail (msmtp)',
        context: '~/.msmtprc',
        code: (to) => lines(
          'account default',
          `host ${to.host}`,
          `port ${to.port}`,
          `from ${SENDER}`,
          `tls ${to.tls === 'off' ? 'off' : 'on'}`,
          to.tls === 'implicit' && 'tls_starttls off',
          `auth ${to.auth ? 'plain' : 'off'}`,
          to.auth && 'user USER',
          to.auth && 'password PASSWORD',
          '',
          `# printf 'Subject: Hello\\n\\nIt works.\\n' | msmtp ${to.recipient}`,
        ),
      },
    ],
  },
  {
    name: 'Languages',
    snippets: [
      {
        id: 'dotnet',
        name: '.NET (MailKit)',
        context: 'C#',
        code: (to) => lines(
          'using MailKit.Net.Smtp;',
          'using MailKit.Security;',
          'using MimeKit;',
          '',
          'var message = new MimeMessage { Subject = "Hello" };',
          'message.Body = new TextPart("plain") { Text = "It works." };',
          `message.From.Add(MailboxAddress.Parse("${SENDER}"));`,
          `message.To.Add(MailboxAddress.Parse("${to.recipient}"));`,
          'using var client = new SmtpClient();',
          `await client.ConnectAsync("${to.host}", ${to.port}, SecureSocketOptions.${{ off: 'None', implicit: 'SslOnConnect' }[to.tls]});`,
          to.auth && 'await client.AuthenticateAsync("USER", "PASSWORD");',
          'await client.SendAsync(message);',
          'await client.DisconnectAsync(true);',
        ),
      },
      {
        id: 'go',
        name: 'Go (net/smtp)',
        context: 'Go',
        code: (to) => lines(
          to.tls === 'implicit' && '// net/smtp does STARTTLS only: dial with crypto/tls and pass the connection to smtp.NewClient.',
          to.auth && `auth := smtp.PlainAuth("", "USER", "PASSWORD", "${to.host}")`,
          'message := "Subject: Hello\\r\\n\\r\\nIt works.\\r\\n"',
          `err := smtp.SendMail("${inUrl(to)}", ${to.auth ? 'auth' : 'nil'},`,
          `\t"${SENDER}", []string{"${to.recipient}"}, []byte(message))`,
        ),
      },
      {
        id: 'node',
        name: 'Node.js (Nodemailer)',
        context: 'JavaScript',
        code: (to) => lines(
          'const transport = nodemailer.createTransport({',
          `  host: '${to.host}',`,
          `  port: ${to.port},`,
          `  secure: ${to.tls === 'implicit'},`,
          to.tls === 'off' && '  ignoreTLS: true,',
          to.auth && "  auth: { user: 'USER', pass: 'PASSWORD' },",
          '});',
          'await transport.sendMail({',
          `  from: '${SENDER}', to: '${to.recipient}',`,
          "  subject: 'Hello', text: 'It works.',",
          '});',
        ),
      },
      {
        id: 'php',
        name: 'PHP mail()',
        context: 'php.ini',
        code: (to) => lines(
          '; Linux and macOS, using msmtp',
          `sendmail_path = "${[
            `msmtp --host=${to.host} --port=${to.port} --from=${SENDER}`,
            to.tls !== 'off' && '--tls=on',
            to.tls === 'implicit' && '--tls-starttls=off',
            to.auth && "--auth=plain --user=USER --passwordeval='echo PASSWORD'",
            '-t',
          ].filter(Boolean).join(' ')}"`,
          to.tls === 'off' && !to.auth && '',
          to.tls === 'off' && !to.auth && '; Windows',
          to.tls === 'off' && !to.auth && `SMTP = ${to.host}`,
          to.tls === 'off' && !to.auth && `smtp_port = ${to.port}`,
        ),
      },
      {
        id: 'python',
        name: 'Python (smtplib)',
        context: 'Python',
        code: (to) => lines(
          'import smtplib',
          'from email.message import EmailMessage',
          '',
          'message = EmailMessage()',
          `message["From"], message["To"] = "${SENDER}", "${to.recipient}"`,
          'message["Subject"] = "Hello"',
          'message.set_content("It works.")',
          `with smtplib.${to.tls === 'implicit' ? 'SMTP_SSL' : 'SMTP'}("${to.host}", ${to.port}) as server:`,
          to.auth && '    server.login("USER", "PASSWORD")',
          '    server.send_message(message)',
        ),
      },
      {
        id: 'rust',
        name: 'Rust (lettre)',
        context: 'Rust',
        code: (to) => lines(
          `use lettre::{${to.auth ? 'transport::smtp::authentication::Credentials, ' : ''}Message, SmtpTransport, Transport};`,
          '',
          'let message = Message::builder()',
          `    .from("${SENDER}".parse()?)`,
          `    .to("${to.recipient}".parse()?)`,
          '    .subject("Hello")',
          '    .body(String::from("It works."))?;',
          `let mailer = SmtpTransport::${{ off: `builder_dangerous("${to.host}")`, implicit: `relay("${to.host}")?` }[to.tls]}`,
          `    .port(${to.port})`,
          to.auth && '    .credentials(Credentials::new("USER".into(), "PASSWORD".into()))',
          '    .build();',
          'mailer.send(&message)?;',
        ),
      },
    ],
  },
  {
    name: 'Frameworks',
    snippets: [
      {
        id: 'django',
        name: 'Django',
        context: 'settings.py',
        code: (to) => lines(
          'EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"',
          `EMAIL_HOST = "${to.host}"`,
          `EMAIL_PORT = ${to.port}`,
          to.tls === 'implicit' && 'EMAIL_USE_SSL = True',
          to.auth && 'EMAIL_HOST_USER = "USER"',
          to.auth && 'EMAIL_HOST_PASSWORD = "PASSWORD"',
        ),
      },
      {
        id: 'laravel',
        name: 'Laravel',
        context: '.env',
        code: (to) => lines(
          'MAIL_MAILER=smtp',
          `MAIL_SCHEME=${to.tls === 'implicit' ? 'smtps' : 'smtp'}`,
          `MAIL_HOST=${to.host}`,
          `MAIL_PORT=${to.port}`,
          `MAIL_USERNAME=${to.auth ? 'USER' : 'null'}`,
          `MAIL_PASSWORD=${to.auth ? 'PASSWORD' : 'null'}`,
          `MAIL_FROM_ADDRESS=${SENDER}`,
        ),
      },
      {
        id: 'rails',
        name: 'Ruby on Rails',
        context: 'config/environments/development.rb',
        code: (to) => lines(
          'config.action_mailer.delivery_method = :smtp',
          'config.action_mailer.smtp_settings = {',
          `  address: "${to.host}",`,
          `  port: ${to.port},`,
          to.tls === 'off' && '  enable_starttls_auto: false,',
          to.tls === 'implicit' && '  tls: true,',
          to.auth && '  authentication: :plain, user_name: "USER", password: "PASSWORD",',
          '}',
        ),
      },
      {
        id: 'spring',
        name: 'Spring Boot',
        context: 'application.properties',
        code: (to) => lines(
          `spring.mail.host=${to.host}`,
          `spring.mail.port=${to.port}`,
          to.tls === 'implicit' && 'spring.mail.properties.mail.smtp.ssl.enable=true',
          to.auth && 'spring.mail.properties.mail.smtp.auth=true',
          to.auth && 'spring.mail.username=USER',
          to.auth && 'spring.mail.password=PASSWORD',
        ),
      },
      {
        id: 'symfony',
        name: 'Symfony',
        context: '.env',
        code: (to) => `MAILER_DSN=${to.tls === 'implicit' ? 'smtps' : 'smtp'}://${to.auth ? 'USER:PASSWORD@' : ''}${inUrl(to)}`,
      },
      {
        id: 'docker',
        name: 'Docker, environment',
        context: 'Shell',
        code: (to) => {
          // In a container, `localhost` is the container itself.
          const isLocalServer = isLocal(to.host);
          return lines(
            'docker run \\',
            isLocalServer && '  --add-host host.docker.internal:host-gateway \\',
            `  --env SMTP_HOST=${isLocalServer ? 'host.docker.internal' : to.host} \\`,
            `  --env SMTP_PORT=${to.port} \\`,
            to.auth && '  --env SMTP_USER=USER --env SMTP_PASSWORD=PASSWORD \\',
            '  your-image',
          );
        },
      },
    ],
  },
  {
    name: 'APIs of mail providers',
    snippets: [
      {
        id: 'ses',
        name: 'Amazon SES',
        context: 'Environment of any AWS SDK',
        isHttp: true,
        code: (to) => lines(
          `AWS_ENDPOINT_URL_SESV2=${to.url}`,
          `AWS_ENDPOINT_URL_SES=${to.url}/ses`,
          'AWS_REGION=us-east-1',
          `AWS_ACCESS_KEY_ID=${to.key}`,
          'AWS_SECRET_ACCESS_KEY=any-secret',
        ),
      },
      {
        id: 'resend',
        name: 'Resend',
        context: 'Environment',
        isHttp: true,
        code: (to) => lines(
          '# Node.js, Go and PHP',
          `RESEND_BASE_URL=${to.url}`,
          '# Python',
          `RESEND_API_URL=${to.url}`,
          `RESEND_API_KEY=${to.key}`,
        ),
      },
      {
        id: 'sendgrid',
        name: 'SendGrid',
        context: 'JavaScript',
        isHttp: true,
        code: (to) => lines(
          "import sgMail from '@sendgrid/mail';",
          '',
          `sgMail.setApiKey('${to.key}');`,
          '// After setApiKey, which resets the URL.',
          `sgMail.client.setDefaultRequest('baseUrl', '${to.url}/');`,
        ),
      },
      {
        id: 'postmark',
        name: 'Postmark',
        context: 'JavaScript',
        isHttp: true,
        code: (to) => {
          const [scheme, host] = to.url.split('://');
          return lines(
            "import { ServerClient } from 'postmark';",
            '',
            `const client = new ServerClient('${to.key}', {`,
            `  requestHost: '${host}', useHttps: ${scheme === 'https'},`,
            '});',
          );
        },
      },
      {
        id: 'mailgun',
        name: 'Mailgun',
        context: 'JavaScript',
        isHttp: true,
        code: (to) => lines(
          "import Mailgun from 'mailgun.js';",
          '',
          'const mailgun = new Mailgun(FormData).client({',
          `  username: 'api', key: '${to.key}', url: '${to.url}',`,
          '});',
        ),
      },
      {
        id: 'brevo',
        name: 'Brevo',
        context: 'JavaScript',
        isHttp: true,
        code: (to) => lines(
          "import { BrevoClient } from '@getbrevo/brevo';",
          '',
          `const client = new BrevoClient({ apiKey: '${to.key}', baseUrl: '${to.url}/v3' });`,
        ),
      },
      {
        id: 'anymail',
        name: 'Django (Anymail)',
        context: 'settings.py',
        isHttp: true,
        code: (to) => lines(
          'EMAIL_BACKEND = "anymail.backends.sendgrid.EmailBackend"',
          'ANYMAIL = {',
          `    "SENDGRID_API_URL": "${to.url}/v3/",`,
          `    "SENDGRID_API_KEY": "${to.key}",`,
          '}',
        ),
      },
    ],
  },
];

export const SNIPPETS = GROUPS.flatMap((group) => group.snippets);

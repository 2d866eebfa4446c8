// How programs are told to send their mail here: one snippet per tool or framework, with the place of this server
// filled in. Only texts are made here; what shows and copies them is elsewhere.

/** @import { Server } from '../types.js' */

/**
 * Where mail goes, as a program has to be told.
 * @typedef {object} Target
 * @property {string} host Without the brackets that a URL puts around IPv6.
 * @property {number} port
 * @property {'off' | 'implicit'} tls What a client has to do; what it merely may do counts as `off`.
 * @property {boolean} auth Whether mail is taken only after a login.
 * @property {string} recipient An address that needs no quoting anywhere.
 */

/** @typedef {{ id: string, name: string, place: string, code: (to: Target) => string }} Snippet */

/** The port that a server listens on unless somebody chose another. */
export const USUAL_PORT = 2500;
const SENDER = 'app@example.org';
export const RECIPIENT = 'test@example.org';

/**
 * @param {string} hostname As `location` names it.
 * @param {Server | null} server Null when it could not be asked.
 * @param {string} [recipient]
 * @returns {Target}
 */
export function target(hostname, server, recipient = RECIPIENT) {
  const smtp = server?.smtp;
  const tls = smtp?.tls === 'implicit' ? 'implicit' : 'off';
  return { host: hostname.replace(/^\[|\]$/gu, ''), port: smtp?.port ?? USUAL_PORT, tls, auth: smtp?.['auth-required'] ?? false, recipient };
}

/**
 * Whether a host means the machine itself, to whoever says it.
 * @param {string} host
 */
export const isLocal = (host) => /^(localhost|127\.[\d.]+|\[?::1\]?)$/u.test(host);

/**
 * The mailbox in which mail to the snippets' recipient arrives.
 * @param {Server['mailbox-naming']} naming
 */
export function mailboxOf(naming) {
  const [local, domain] = RECIPIENT.split('@');
  return { local, domain, full: RECIPIENT }[naming] ?? local;
}

/** @param {Target} to */
const inUrl = ({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/**
 * A text of these lines, without those that are left out.
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
        place: 'Shell',
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
        place: 'Shell',
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
        place: '~/.msmtprc',
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
        place: 'C#',
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
        place: 'Go',
        code: (to) => lines(
          to.tls === 'implicit' && '// net/smtp does STARTTLS only: dial with crypto/tls and hand the connection to smtp.NewClient.',
          to.auth && `auth := smtp.PlainAuth("", "USER", "PASSWORD", "${to.host}")`,
          'message := "Subject: Hello\\r\\n\\r\\nIt works.\\r\\n"',
          `err := smtp.SendMail("${inUrl(to)}", ${to.auth ? 'auth' : 'nil'},`,
          `\t"${SENDER}", []string{"${to.recipient}"}, []byte(message))`,
        ),
      },
      {
        id: 'node',
        name: 'Node.js (Nodemailer)',
        place: 'JavaScript',
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
        place: 'php.ini',
        code: (to) => lines(
          '; Linux and macOS, by way of msmtp',
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
        place: 'Python',
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
        place: 'Rust',
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
        place: 'settings.py',
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
        place: '.env',
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
        place: 'config/environments/development.rb',
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
        place: 'application.properties',
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
        place: '.env',
        code: (to) => `MAILER_DSN=${to.tls === 'implicit' ? 'smtps' : 'smtp'}://${to.auth ? 'USER:PASSWORD@' : ''}${inUrl(to)}`,
      },
      {
        id: 'docker',
        name: 'Docker, environment',
        place: 'Shell',
        code: (to) => {
          // To a container, this name is the container itself.
          const here = isLocal(to.host);
          return lines(
            'docker run \\',
            here && '  --add-host host.docker.internal:host-gateway \\',
            `  --env SMTP_HOST=${here ? 'host.docker.internal' : to.host} \\`,
            `  --env SMTP_PORT=${to.port} \\`,
            to.auth && '  --env SMTP_USER=USER --env SMTP_PASSWORD=PASSWORD \\',
            '  your-image',
          );
        },
      },
    ],
  },
];

export const SNIPPETS = GROUPS.flatMap((group) => group.snippets);

module imapclients

go 1.24.0

require (
	github.com/emersion/go-imap/v2 v2.0.0-beta.8
	github.com/emersion/go-sasl v0.0.0-20241020182733-b788ff22d5a6
)

require github.com/emersion/go-message v0.18.2 // indirect

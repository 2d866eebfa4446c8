// Sends the messages with SDKs and checks what these return.
//
// Usage: go run . SDK...
// PROVIDERS_URL is the address of the server, PROVIDERS_KEY the key.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode"
)

// Person is a name, which may be empty, and an address.
type Person struct{ Name, Address string }

// String returns the form `Bob Example <bob@example.test>`.
func (p Person) String() string {
	if p.Name == "" {
		return p.Address
	}
	isPlain := strings.IndexFunc(p.Name, func(r rune) bool { return !unicode.IsLetter(r) && r != ' ' }) < 0
	if isPlain {
		return p.Name + " <" + p.Address + ">"
	}
	return `"` + p.Name + `" <` + p.Address + ">"
}

func formatted(people []Person) []string {
	var list []string
	for _, person := range people {
		list = append(list, person.String())
	}
	return list
}

// Attachment is a file. It is an inline image if it has a CID.
type Attachment struct{ Filename, Type, Content, CID string }

func (a Attachment) bytes() []byte {
	content, err := base64.StdEncoding.DecodeString(a.Content)
	check(err)
	return content
}

// Message is one of the messages that every SDK sends.
type Message struct {
	Name, Subject, Text, HTML string
	From                      Person
	To, CC, BCC               []Person
	ReplyTo                   []Person `json:"reply-to"`
	Attachments               []Attachment
}

// SDK sends messages, and returns an error for an unexpected answer.
type SDK interface {
	Send(Message) error
	SendBatch([]Message) error
	// CheckInvalid returns an error if the argument is not that of a message with an invalid recipient.
	CheckInvalid(error) error
}

func messagesFor(sdk string) map[string]Message {
	text, err := os.ReadFile("../messages.json")
	check(err)
	var list []Message
	check(json.Unmarshal([]byte(strings.ReplaceAll(string(text), "SDK", sdk)), &list))
	messages := make(map[string]Message)
	for _, message := range list {
		messages[message.Name] = message
	}
	return messages
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	url, key := os.Getenv("PROVIDERS_URL"), "key"
	if given := os.Getenv("PROVIDERS_KEY"); given != "" {
		key = given
	}
	connect := map[string]func(url, key string) SDK{"sesv2": connectSES, "resend": connectResend, "mailgun": connectMailgun}
	failures := 0
	step := func(name string, err error) {
		if err != nil {
			failures++
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		}
	}
	for _, name := range os.Args[1:] {
		sdk, messages := connect[name](url, key), messagesFor("go-"+name)
		for _, message := range []string{"basic", "attachment", "inline", "many", "unicode"} {
			step(name+" "+message, sdk.Send(messages[message]))
		}
		batch := []Message{messages["batch-1"], messages["batch-2"], messages["batch-3"]}
		step(name+" batch", sdk.SendBatch(batch))
		err := sdk.Send(messages["invalid"])
		if err == nil {
			err = fmt.Errorf("succeeded")
		} else {
			err = sdk.CheckInvalid(err)
		}
		step(name+" invalid", err)
	}
	if failures > 0 {
		os.Exit(1)
	}
}

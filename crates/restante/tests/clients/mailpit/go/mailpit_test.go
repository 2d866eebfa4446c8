// Package mailpitclients tests the program with the request and the wait strategy of the Mailpit module of Testcontainers for
// Go, without Docker: the program is started with the variables of the request, and the strategy waits for it.
package mailpitclients

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/smtp"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	tcexec "github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/modules/mailpit"
)

const (
	smtpPort = "1025/tcp"
	httpPort = "8025/tcp"
)

var errStop = errors.New("the request is complete")

// requestOf returns the request that the module would send to Docker.
func requestOf(t *testing.T, options ...testcontainers.ContainerCustomizer) testcontainers.ContainerRequest {
	t.Helper()
	var request testcontainers.ContainerRequest
	last := testcontainers.CustomizeRequestOption(func(complete *testcontainers.GenericContainerRequest) error {
		request = complete.ContainerRequest
		return errStop
	})
	_, err := mailpit.Run(context.Background(), "axllent/mailpit:v1.30", append(options, last)...)
	if !errors.Is(err, errStop) {
		t.Fatalf("the module did not call the last option: %v", err)
	}
	return request
}

// process is the running program instead of a container.
type process struct {
	addresses map[string]string
	exited    chan struct{}
}

// start starts the program with the variables of a request, on reserved ports, and waits as the module does.
func start(t *testing.T, request testcontainers.ContainerRequest) *process {
	t.Helper()
	if !slices.Equal(request.ExposedPorts, []string{smtpPort, httpPort}) {
		t.Fatalf("the request exposes %v", request.ExposedPorts)
	}
	started := &process{
		addresses: map[string]string{smtpPort: required(t, "MAILPIT_SMTP"), httpPort: required(t, "MAILPIT_HTTP")},
		exited:    make(chan struct{}),
	}
	program := strings.Fields(required(t, "MAILPIT_PROGRAM"))
	command := exec.Command(program[0], program[1:]...)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "MP_SMTP_BIND_ADDR="+started.addresses[smtpPort],
		"MP_UI_BIND_ADDR="+started.addresses[httpPort], "MP_DISABLE_VERSION_CHECK=true")
	for name, value := range request.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = command.Wait()
		close(started.exited)
	}()
	stop := func() {
		_ = command.Process.Kill()
		<-started.exited
	}
	if err := request.WaitingFor.WaitUntilReady(context.Background(), started); err != nil {
		stop()
		t.Fatalf("%v, after the output:\n%s", err, output.String())
	}
	t.Cleanup(stop)
	return started
}

func required(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("the variable %s is not set", name)
	}
	return value
}

func (p *process) Host(context.Context) (string, error) { return "127.0.0.1", nil }

func (p *process) MappedPort(_ context.Context, port string) (network.Port, error) {
	_, number, err := net.SplitHostPort(p.addresses[port])
	if err != nil {
		return network.Port{}, err
	}
	return network.ParsePort(number + "/tcp")
}

func (p *process) State(context.Context) (*container.State, error) {
	select {
	case <-p.exited:
		return &container.State{Status: container.StateExited}, nil
	default:
		return &container.State{Running: true, Status: container.StateRunning}, nil
	}
}

var errUnsupported = errors.New("only a container can do this")

func (p *process) Inspect(context.Context) (*container.InspectResponse, error) {
	return nil, errUnsupported
}
func (p *process) Ports(context.Context) (network.PortMap, error) { return nil, errUnsupported }
func (p *process) Logs(context.Context) (io.ReadCloser, error)    { return nil, errUnsupported }
func (p *process) CopyFileFromContainer(context.Context, string) (io.ReadCloser, error) {
	return nil, errUnsupported
}
func (p *process) Exec(context.Context, []string, ...tcexec.ProcessOption) (int, io.Reader, error) {
	return 0, nil, errUnsupported
}

type list struct {
	Total    int `json:"total"`
	Messages []struct {
		Subject  string
		Username string
	} `json:"messages"`
}

func (p *process) list(t *testing.T) list {
	t.Helper()
	response, err := http.Get("http://" + p.addresses[httpPort] + "/api/v1/messages")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var messages list
	if err := json.NewDecoder(response.Body).Decode(&messages); err != nil {
		t.Fatal(err)
	}
	return messages
}

func (p *process) send(subject string, auth smtp.Auth) error {
	mail := "From: ann@example.test\r\nTo: bob@example.test\r\nSubject: " + subject + "\r\n\r\nText\r\n"
	return smtp.SendMail(p.addresses[smtpPort], auth, "ann@example.test", []string{"bob@example.test"}, []byte(mail))
}

func TestDefaultRequest(t *testing.T) {
	server := start(t, requestOf(t))
	if err := server.send("hello", nil); err != nil {
		t.Fatal(err)
	}
	messages := server.list(t)
	if messages.Total != 1 || messages.Messages[0].Subject != "hello" {
		t.Fatalf("got %+v", messages)
	}
}

func TestSMTPAuth(t *testing.T) {
	server := start(t, requestOf(t, mailpit.WithSMTPAuth("user", "password")))
	if err := server.send("right", smtp.PlainAuth("", "user", "password", "127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	for name, auth := range map[string]smtp.Auth{
		"no login":       nil,
		"wrong password": smtp.PlainAuth("", "user", "wrong", "127.0.0.1"),
		"wrong user":     smtp.PlainAuth("", "other", "password", "127.0.0.1"),
	} {
		if err := server.send(name, auth); err == nil {
			t.Errorf("%s: the mail was accepted", name)
		}
	}
	messages := server.list(t)
	if messages.Total != 1 || messages.Messages[0].Username != "user" {
		t.Fatalf("got %+v", messages)
	}
}

// Mailpit removes surplus messages once per minute.
func TestMessageLimit(t *testing.T) {
	server := start(t, requestOf(t, mailpit.WithMessageLimit(3)))
	for _, subject := range []string{"1", "2", "3", "4", "5"} {
		if err := server.send(subject, nil); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(3 * time.Minute)
	messages := server.list(t)
	for messages.Total != 3 && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
		messages = server.list(t)
	}
	if messages.Total != 3 || messages.Messages[0].Subject != "5" || messages.Messages[2].Subject != "3" {
		t.Fatalf("got %+v", messages)
	}
}

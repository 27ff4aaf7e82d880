// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A Process is a running Envoy.
type Process struct {
	Admin string // host:port of its admin interface

	ctx  context.Context // ends it at once
	kill context.CancelFunc
	told atomic.Bool // to end
	done chan struct{}
	err  error // set when done is closed
	tail *tail
	http *http.Client
}

func newProcess() *Process {
	p := &Process{done: make(chan struct{}), tail: new(tail)}
	p.http = &http.Client{Transport: newTransport(), Timeout: 5 * time.Second}
	p.ctx, p.kill = context.WithCancel(context.Background())
	return p
}

// newTransport makes connections that do not outlive a call, so that nothing is left of a process that has ended.
func newTransport() *http.Transport {
	return &http.Transport{DisableKeepAlives: true}
}

// Done is closed when Envoy has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until Envoy has ended, and says why if it was not told to.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Stop ends Envoy and waits for it: requests in flight are cut. It may be called any number of times.
func (p *Process) Stop() error {
	select {
	case <-p.done:
		return p.err
	default:
	}
	p.told.Store(true)
	// The only signal that func-e sends is SIGKILL, so Envoy is asked first.
	if p.Admin != "" && p.post("/quitquitquit") == nil {
		select {
		case <-p.done:
		case <-time.After(3 * time.Second):
		}
	}
	p.kill()
	return p.Wait()
}

// Kill ends Envoy as a crash does, by SIGKILL, and waits for it.
func (p *Process) Kill() error {
	p.told.Store(true)
	p.kill()
	return p.Wait()
}

func (p *Process) post(path string) error {
	resp, err := p.http.Post("http://"+p.Admin+path, "", nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// awaitAdmin waits for the admin address, which Envoy writes into a file.
func (p *Process) awaitAdmin(ctx context.Context, path string) error {
	return p.poll(ctx, func() error {
		b, err := os.ReadFile(path)
		if err == nil && len(b) == 0 {
			err = errors.New("no admin address yet")
		}
		p.Admin = strings.TrimSpace(string(b))
		return err
	})
}

// Ready waits until Envoy is ready: all of its first configuration has come.
func (p *Process) Ready(ctx context.Context) error {
	return p.poll(ctx, func() error {
		_, err := p.Get(ctx, "/ready")
		return err
	})
}

// poll tries until it works, Envoy has ended, or the time is up; then it says what was last wrong.
func (p *Process) poll(ctx context.Context, try func() error) error {
	t := time.NewTicker(10 * time.Millisecond)
	defer t.Stop()
	var last error
	for {
		err := try()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // that the time is up is said below
			last = err
		}
		select {
		case <-p.done:
			if p.err != nil {
				return p.err
			}
			return errors.New("envoy has ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("envoy is not ready: %w: %w%s", ctx.Err(), last, p.tail.lines())
		case <-t.C:
		}
	}
}

// Get asks the admin interface.
func (p *Process) Get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Admin+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("envoy answers %s with %d: %s", path, resp.StatusCode, strings.TrimSpace(string(b)))
	}
	return b, nil
}

// Listener gives the address of a listener, which Envoy chose if the port was 0.
func (p *Process) Listener(ctx context.Context, name string) (string, error) {
	b, err := p.Get(ctx, "/listeners?format=json")
	if err != nil {
		return "", err
	}
	var v struct {
		Statuses []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Host string `json:"address"`
					Port int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return "", fmt.Errorf("listeners of envoy: %w", err)
	}
	for _, s := range v.Statuses {
		if s.Name == name {
			return net.JoinHostPort(s.Address.Socket.Host, strconv.Itoa(s.Address.Socket.Port)), nil
		}
	}
	return "", fmt.Errorf("envoy has no listener %q", name)
}

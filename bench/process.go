// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process is a part of a peer. Only what was started here is ever ended, by its id.
type process struct {
	name, addr string
	args, env  []string
	dir        string // of its log
	cmd        *exec.Cmd
	exited     chan struct{}
	took       time.Duration // from its start until its address answered
}

func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err) // a machine without a loopback interface can run no benchmark
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts it and waits until its address answers.
func (p *process) start() error {
	log, err := os.OpenFile(filepath.Join(p.dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(os.Environ(), p.env...), log, log
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	began := time.Now()
	p.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) { _ = cmd.Wait(); close(exited) }(p.cmd, p.exited)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c, err := net.DialTimeout("tcp", p.addr, time.Second); err == nil {
			c.Close()
			p.took = time.Since(began)
			return nil
		}
		select {
		case <-p.exited:
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%s ended: %s", p.name, said[max(0, len(said)-2000):])
		default:
		}
	}
	return errors.Join(fmt.Errorf("%s does not listen at %s", p.name, p.addr), p.stop())
}

func (p *process) stop() error {
	if p.cmd == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	p.cmd = nil
	return nil
}

// usage is what a process has used: processor time, and memory now.
type usage struct {
	cpu    time.Duration
	memory int64
}

func usageOf(parts []*process) (u usage) {
	for _, p := range parts {
		if p.cmd == nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
		number := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n }
		u.cpu += time.Duration(number(11)+number(12)) * 10 * time.Millisecond // clock ticks are 10 ms on Linux
		u.memory += number(21) * int64(os.Getpagesize())
	}
	return u
}

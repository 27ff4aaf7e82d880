// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open opens the store that an address names: bolt:PATH, redis://… or rediss://….
func Open(address string) (Store, error) {
	scheme, rest, ok := strings.Cut(address, ":")
	switch {
	case ok && scheme == "bolt" && rest != "":
		return OpenBolt(rest)
	case ok && (scheme == "redis" || scheme == "rediss"):
		return OpenRedis(address)
	}
	return nil, errors.New("store: write bolt:PATH, redis://HOST:PORT or rediss://USER:PASSWORD@HOST:PORT")
}

// OpenRedis makes a store of a Redis or Valkey at redis://user:password@host:port/db, with TLS at rediss://. Beside what go-redis
// knows, the address may say fleet=NAME, which keeps fleets of one Redis apart, cluster=true, and ca=, cert= and key=, files
// for TLS. It does not connect yet.
func OpenRedis(address string) (*Redis, error) { return openRedis(address, redisTime) }

var fleetName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func openRedis(address, clock string) (*Redis, error) {
	u, err := url.Parse(address)
	if err != nil { // its text would have the address, and so the password
		return nil, errors.New("store: the address is no URL: write redis://HOST:PORT; special characters of a password as %XX")
	}
	q := u.Query()
	own := func(name string) string { v := q.Get(name); q.Del(name); return v }
	fleet, cluster := own("fleet"), own("cluster")
	ca, cert, key := own("ca"), own("cert"), own("key")
	if fleet != "" && !fleetName.MatchString(fleet) {
		return nil, errors.New("store: fleet= takes up to 64 letters, digits, _, . and -")
	}
	if q.Has("skip_verify") {
		return nil, errors.New("store: weir does not talk to a Redis that may be another's: write ca=FILE instead of skip_verify")
	}
	u.RawQuery = q.Encode()
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("store: %s: %s", u.Host, strings.ReplaceAll(err.Error(), u.String(), u.Redacted()))
	}
	if err := files(o.TLSConfig, ca, cert, key); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	redis.SetLogger(quiet{})
	tag := "{weir}:"
	if fleet != "" {
		tag = "{weir:" + fleet + "}:"
	}
	return &Redis{client: client(o, cluster == "true"), name: u.Scheme + "://" + u.Host, tag: tag, scripts: newScripts(clock)}, nil
}

func client(o *redis.Options, cluster bool) redis.UniversalClient {
	addr := o.Addr
	c := &redis.UniversalOptions{
		Addrs: []string{addr}, DB: o.DB, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		IsClusterMode: cluster, PoolSize: o.PoolSize, MinIdleConns: o.MinIdleConns,
		// RESP2 and no words about itself: a user whose rights are few may use no more.
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		// Bounds: an operation and one more try, within the time that `within` allows.
		DialTimeout: 500 * time.Millisecond, ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
		PoolTimeout: 500 * time.Millisecond, MaxRetries: 1, ContextTimeoutEnabled: true, DialerRetries: 1,
	}
	return redis.NewUniversalClient(c)
}

// files takes certificates from files.
func files(c *tls.Config, ca, cert, key string) error {
	if ca == "" && cert == "" && key == "" {
		return nil
	}
	if c == nil {
		return errors.New("ca=, cert= and key= belong to rediss://")
	}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s has no certificates", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// quiet is go-redis's log: what fails is an error of a call, and said there.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// OpenWarning says what is dangerous about an address; empty: nothing.
func OpenWarning(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "redis" {
		return ""
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() == "localhost" || u.Hostname() == "" || err == nil && ip.IsLoopback() {
		return ""
	}
	return "redis:// sends everything, the password too, in plain text to another machine: use rediss://"
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// startService starts Redis, and envoyproxy/ratelimit on it.
func (b *bench) startService() (redis, service *process, err error) {
	server, err := exec.LookPath("redis-server")
	if err != nil {
		if server, err = exec.LookPath("valkey-server"); err != nil {
			return nil, nil, errors.New("the peers need redis-server: sh hack/get-redis.sh")
		}
	}
	redis = &process{name: "redis", addr: freeAddr()}
	_, port, _ := strings.Cut(redis.addr, ":")
	redis.args = []string{server, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", b.dir}
	if _, err := b.run(redis); err != nil {
		return nil, nil, err
	}
	if err := b.serviceLimits(unlimited); err != nil {
		return nil, nil, err
	}
	service = &process{name: "ratelimit", addr: freeAddr(), args: []string{filepath.Join(b.tools, "ratelimit")}}
	_, grpc, _ := strings.Cut(service.addr, ":")
	_, http, _ := strings.Cut(freeAddr(), ":")
	_, debug, _ := strings.Cut(freeAddr(), ":")
	service.env = []string{
		"HOST=127.0.0.1", "PORT=" + http, "GRPC_HOST=127.0.0.1", "GRPC_PORT=" + grpc, "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=" + debug,
		"USE_STATSD=false", "DISABLE_STATS=true", "LOG_LEVEL=warn", "BACKEND_TYPE=redis", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.addr,
		"RUNTIME_ROOT=" + filepath.Join(b.dir, "ratelimit"), "RUNTIME_SUBDIRECTORY=limits", "RUNTIME_WATCH_ROOT=false", "RUNTIME_IGNOREDOTFILES=true",
	}
	_, err = b.run(service)
	return redis, service, err
}

// serviceLimits writes the rate limit service's configuration.
func (b *bench) serviceLimits(change int) error {
	rules := func(indent string, limit, unlimited, change int) string {
		rule := func(value string, n int) string {
			return fmt.Sprintf("%s- {key: tenant, %srate_limit: {unit: minute, requests_per_unit: %d}}\n", indent, value, n)
		}
		return rule("value: perf, ", unlimited) + rule("value: within, ", 10*limit) + rule("value: change, ", change) + rule("", limit)
	}
	_, err := b.write("ratelimit/limits/config/bench.yaml", "domain: bench\ndescriptors:\n"+rules("", limit, unlimited, change)+
		"- key: kind\n  value: call\n  descriptors:\n"+rules("  ", limit/callSize, unlimited, change))
	return err
}

// startHardcap starts the gateway of that name, which has one process and Redis.
func (b *bench) startHardcap(name, estimator string, redis *process) error {
	config := &strings.Builder{}
	fmt.Fprintf(config, `redis_url: redis://%s/0
key_prefix: %s
budget: {accounting: reserve, estimator: %s, on_overrun: truncate}
upstreams: {provider: {kind: openai, base_url: "http://%s/v1"}}
routes: {gpt-4o: {targets: [{upstream: provider, model: gpt-4o}]}}
tenants:
  perf: {api_keys: [perf], budget: {total: %d, window_s: 60}}
  within: {api_keys: [within], budget: {total: %d, window_s: 60}}
`, redis.addr, estimator, estimator, b.provider, unlimited, 10*limit)
	for _, t := range tenants {
		fmt.Fprintf(config, "  %s: {api_keys: [%s], budget: {total: %d, window_s: 60}}\n", t, t, limit)
	}
	file, err := b.write(name+".yaml", config.String())
	if err != nil {
		return err
	}
	addr := freeAddr()
	host, port, _ := strings.Cut(addr, ":")
	p, err := b.run(&process{name: name, addr: addr, args: []string{
		filepath.Join(b.tools, "hardcap/bin/hardcap"), "serve", "-c", file, "--host", host, "--port", port, "--workers", "1",
	}})
	if err == nil {
		b.peers = append(b.peers, &peer{name: name, addr: addr, parts: []*process{p, redis}, store: redis})
	}
	return err
}

const litellmAuth = `from litellm.proxy._types import UserAPIKeyAuth


async def auth(request, api_key: str) -> UserAPIKeyAuth:
    return UserAPIKeyAuth(api_key=api_key, tpm_limit={"perf": %d, "within": %d}.get(api_key, %d))
`

// startLiteLLM starts LiteLLM with Redis, one worker, in an environment with nothing in it.
func (b *bench) startLiteLLM(redis *process) error {
	auth, err := b.write("litellm/weirbench.py", fmt.Sprintf(litellmAuth, unlimited, 10*limit, limit))
	if err != nil {
		return err
	}
	_, redisPort, _ := strings.Cut(redis.addr, ":")
	file, err := b.write("litellm/config.yaml", fmt.Sprintf(`model_list: [{model_name: gpt-4o, litellm_params: {model: openai/gpt-4o, api_base: "http://%s/v1", api_key: none}}]
general_settings: {custom_auth: weirbench.auth, master_key: sk-bench-%s}
litellm_settings: {telemetry: false, num_retries: 0, cache: true, cache_params: {type: redis, host: 127.0.0.1, port: %s, supported_call_types: []}}
router_settings: {num_retries: 0}
`, b.provider, randomName(), redisPort))
	if err != nil {
		return err
	}
	addr := freeAddr()
	_, port, _ := strings.Cut(addr, ":")
	p, err := b.run(&process{name: "LiteLLM", addr: addr, args: []string{
		"env", "-i", "PATH=/usr/bin:/bin", "HOME=" + filepath.Dir(auth), "PYTHONPATH=" + filepath.Dir(auth), "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_MODE=PRODUCTION",
		"LITELLM_LOG=ERROR", "NO_DOCS=True", "DISABLE_ADMIN_UI=True", filepath.Join(b.tools, "litellm/bin/litellm"), "--config", file,
		"--host", "127.0.0.1", "--port", port, "--telemetry", "False", "--num_workers", "1",
	}})
	if err == nil {
		b.peers = append(b.peers, &peer{name: "LiteLLM", addr: addr, parts: []*process{p, redis}, store: redis})
	}
	return err
}

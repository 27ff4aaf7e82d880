// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weirproxy/weir/envoy"
)

// MeshInput is what a mesh gets.
type MeshInput struct {
	FragmentInput
	Namespace string // of weir; default weir-system
	Image     string // that has the filter; default weir
	Sidecar   bool   // Istio: into the callers' own proxies instead of an egress gateway
}

// MeshPort is where callers reach weir in a mesh. Nothing else may have it: by it alone the filter's listener is told from others.
const MeshPort = 10000

//go:embed mesh/*.tmpl
var meshTemplates embed.FS

// Istio gives what to put into an Istio mesh, as YAML.
func Istio(in MeshInput) ([]byte, error) { return mesh(in, "istio.yaml.tmpl") }

// EnvoyGateway gives what to put into an Envoy Gateway, as YAML.
func EnvoyGateway(in MeshInput) ([]byte, error) { return mesh(in, "envoy-gateway.yaml.tmpl") }

func mesh(in MeshInput, name string) ([]byte, error) {
	if !path.IsAbs(in.Wasm) {
		return nil, fmt.Errorf("the path of the filter in the proxy, %q, is not absolute", in.Wasm)
	}
	t, err := newTranslator(in.Input)
	if err != nil {
		return nil, err
	}
	p, err := Fragments(in.FragmentInput)
	if err != nil {
		return nil, err
	}
	m := &meshData{MeshInput: in, Port: MeshPort, HiddenDots: hiddenDots, pieces: p, bodyCap: t.BodyCap}
	m.Namespace, m.Image = cmp.Or(in.Namespace, "weir-system"), cmp.Or(in.Image, "weir")
	if err := m.add(t.providers); err != nil {
		return nil, err
	}
	tmpl, err := template.New(name).Funcs(template.FuncMap{"q": strconv.Quote, "yaml": indented, "json": compact}).ParseFS(meshTemplates, "mesh/"+name)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	err = tmpl.Execute(&out, m)
	return []byte(out.String()), err
}

// A meshData is what the templates are filled with.
type meshData struct {
	MeshInput
	Port       int
	HiddenDots string
	Routes     []meshRoute
	Hosts      []*meshHost

	pieces  *Pieces
	bodyCap int64
}

// A meshRoute is a provider.
type meshRoute struct{ Name, Prefix, Host, Port, Authority, Base string }

// A meshHost is a name outside of the mesh.
type meshHost struct {
	Name, Host string
	Ports      []meshHostPort
}

type meshHostPort struct {
	Port string
	TLS  bool
}

func (m *meshData) add(providers []*provider) error {
	hosts, names := map[string]*meshHost{}, map[string]int{}
	for _, p := range providers {
		if p.upstream == nil || p.upstream.isIP() {
			return fmt.Errorf("provider %s: a mesh needs an upstream with a name, such as https://api.openai.com", p.name)
		}
		name := resourceName(p.name)
		if names[name]++; names[name] > 1 {
			name += "-" + strconv.Itoa(names[name])
		}
		u := p.upstream
		m.Routes = append(m.Routes, meshRoute{Name: name, Prefix: p.prefix, Host: u.host, Port: u.port, Authority: u.authority(), Base: u.base})
		h := hosts[u.host]
		if h == nil {
			h = &meshHost{Name: name, Host: u.host}
			hosts[u.host] = h
			m.Hosts = append(m.Hosts, h)
		}
		port := meshHostPort{u.port, u.tls}
		if i := slices.IndexFunc(h.Ports, func(o meshHostPort) bool { return o.Port == u.port }); i < 0 {
			h.Ports = append(h.Ports, port)
		} else if h.Ports[i] != port {
			return fmt.Errorf("provider %s: port %s of %s cannot be both http and https", p.name, u.port, u.host)
		}
	}
	return nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// resourceName is a provider's name as Kubernetes takes it.
func resourceName(provider string) string {
	return "weir-" + strings.Trim(notInNames.ReplaceAllString(strings.ToLower(provider), "-"), "-")
}

// Filters are weir's own, as each stands in a connection manager.
func (m *meshData) Filters() []*hcmv3.HttpFilter { return m.pieces.filters() }

// Settings are those of the connection manager, but for what a mesh has by itself: a second entry for websockets is refused.
func (m *meshData) Settings() *hcmv3.HttpConnectionManager {
	s := m.pieces.settings()
	s.UpgradeConfigs = nil
	return s
}

// A settingField is one field of the connection manager.
type settingField struct{ Name, JSON string }

// SettingFields are the settings, each for itself, by name.
func (m *meshData) SettingFields() ([]settingField, error) {
	var fields []settingField
	var err error
	m.Settings().ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		one := &hcmv3.HttpConnectionManager{}
		one.ProtoReflect().Set(f, v)
		var s string
		if s, err = compact(one); err != nil {
			return false
		}
		_, value, _ := strings.Cut(strings.TrimSuffix(s, "}"), ":")
		fields = append(fields, settingField{string(f.Name()), value})
		return true
	})
	slices.SortFunc(fields, func(a, b settingField) int { return strings.Compare(a.Name, b.Name) })
	return fields, err
}

// BackendOf names the Backend of a route.
func (m *meshData) BackendOf(r meshRoute) string {
	i := slices.IndexFunc(m.Hosts, func(h *meshHost) bool { return h.Host == r.Host })
	return m.Hosts[i].Name + "-" + r.Port
}

// Bootstrap is what has to be there when Envoy starts. A cluster that comes later cannot bring configuration.
func (m *meshData) Bootstrap() *bootstrapv3.Bootstrap {
	b := &bootstrapv3.Bootstrap{StatsConfig: envoy.StatsConfig()}
	if len(m.pieces.Control) > 0 {
		b.Node = &corev3.Node{Metadata: m.pieces.Node.Metadata}
		b.StaticResources = &bootstrapv3.Bootstrap_StaticResources{Clusters: m.pieces.Control}
	}
	return b
}

// BufferLimit is how much Envoy may hold of a body.
func (m *meshData) BufferLimit() int64 { return m.bodyCap + bodyMargin }

// WasmDir is the folder of the filter in the proxy.
func (m *meshData) WasmDir() string { return path.Dir(m.Wasm) }

// indented is a message as YAML, to stand n columns from the left.
func indented(n int, message proto.Message) (string, error) {
	b, err := envoy.YAML(message, nil)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(strings.TrimRight(string(b), "\n"), "\n", "\n"+strings.Repeat(" ", n)), nil
}

// compact is a message as JSON on one line: YAML takes it, too. What protojson writes is not the same every time.
func compact(message proto.Message) (string, error) {
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = json.Compact(&out, b)
	return out.String(), err
}

// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// What keeps each map of the filter and the control plane from growing without end, whatever callers and Envoys say. Where it is the
// name of a constant, code of the same package has to use it.
var mapBounds = map[string]string{
	"filter centrals.takes": "streams", "filter member.limits": "the policy", "filter member.keys": "maxKeys", "filter member.quotas": "maxQuotas",
	"filter member.given": "member.quotas", "filter member.waits": "member.quotas, for each worker, for a third of a second", "filter metrics.denied": "reasons and dimensions",
	"filter metrics.queued": "classes of the policy", "filter VM.waiters": "the queue's entries", "filter VM.offers": "maxOffers",
	"filter VM.epochs": "the control plane's document", "filter VM.models": "maxModels", "filter VM.pools": "models of policies",
	"filter Plugin.providers": "the policy", "filter Plugin.lines": "the policy", "filter Plugin.parts": "the policy", "filter Plugin.pools": "the policy",
	"filter Plugin.families": "maxFamilies",

	"controlplane/fleet census.awaited": "records of the store", "controlplane/fleet census.lives": "maxLives", "controlplane/fleet census.newest": "records of the store",
	"controlplane/fleet census.number": "census.lives", "controlplane/fleet core.quotas": "maxQuotas", "controlplane/fleet core.taken": "core.quotas",
	"controlplane/fleet core.nodes": "Envoys that have a stream, for forgetNode", "controlplane/fleet core.records": "what was dirty", "controlplane/fleet core.dirty": "core.quotas and census.lives",
	"controlplane/fleet core.probes": "limits of the policy", "controlplane/fleet core.denials": "maxDenied", "controlplane/fleet core.classes": "maxClasses",
	"controlplane/fleet waited.now": "Envoys that have said so", "controlplane/fleet quota.whole": "Envoys that use it",
	"controlplane/fleet directory.byKey": "the policy", "controlplane/fleet directory.byEntry": "the policy", "controlplane/fleet node.grants": "core.quotas",
	"controlplane/fleet node.last": "core.quotas", "controlplane/fleet node.lent": "core.quotas", "controlplane/fleet node.chunks": "core.quotas", "controlplane/fleet node.rates": "core.quotas",
	"controlplane/fleet quota.queued": "core.nodes", "controlplane/fleet quota.seats": "max_envoys of the policy",

	"controlplane/history Ring.series": "its size, when it is made", "controlplane collector.descs": "families", "controlplane collector.types": "families",
	"controlplane estimates.heard": "maxEstimates", "controlplane estimates.of": "estimates.heard", "controlplane History.Quotas": "boardQuotas",
	"controlplane local.now": "maxLocal", "controlplane LocalCounter.Labels": "labels of one counter of this machine's Envoy", "controlplane View.States": "states",
	"controlplane documents.Documents": "Envoys", "controlplane peers.all": "replicas that write to the store", "controlplane peer.nodes": "Envoys",
	"controlplane outgoing.documents": "Envoys", "controlplane limiter.nodes": "twice the Envoys that are connected, and 100", "controlplane/store leaders.terms": "names in the code",

	"controlplane/xds Server.built": "maxBuilt", "controlplane/xds Server.shares": "Server.nodes", "controlplane/xds Server.streams": "streams of Envoys that may be there",
	"controlplane/xds Server.nodes": "Server.streams", "controlplane/xds Server.refused": "maxRefused", "controlplane/xds Server.nacks": "types that are sent",
	"controlplane/xds stream.types": "types that are sent", "controlplane/xds stream.sent": "maxUnanswered", "controlplane/xds stream.policies": "the version that was sent, and the one accepted",
	"controlplane/xds stream.had": "types that are known",
}

// Whoever adds a map has to say what bounds it.
func TestEachMapHasABound(t *testing.T) {
	left, uses := map[string]bool{}, map[string]int{}
	for m := range mapBounds {
		left[m] = true
	}
	for _, root := range []string{"filter", "controlplane"} {
		err := filepath.WalkDir("../../"+root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test/") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					uses[dir+" "+n.Name]++
				case *ast.TypeSpec:
					for _, field := range mapsOf(n) {
						if mapBounds[dir+" "+field] == "" {
							t.Errorf("%s %s is a map: say in mapBounds what bounds it", dir, field)
						}
						delete(left, dir+" "+field)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for m := range left {
		t.Errorf("%s is no map any more", m)
	}
	for m, bound := range mapBounds {
		dir, _, _ := strings.Cut(m, " ")
		if isConstant := strings.HasPrefix(bound, "max") && !strings.Contains(bound, " "); isConstant && uses[dir+" "+bound] < 2 {
			t.Errorf("%s: %s is used nowhere", m, bound)
		}
	}
}

// mapsOf gives the fields of a struct that are maps.
func mapsOf(n *ast.TypeSpec) (fields []string) {
	s, ok := n.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, f := range s.Fields.List {
		if _, ok := f.Type.(*ast.MapType); ok {
			for _, name := range f.Names {
				fields = append(fields, n.Name.Name+"."+name.Name)
			}
		}
	}
	return fields
}

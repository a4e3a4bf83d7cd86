package main

import (
	"cmp"

	"github.com/spf13/cobra"
)

const goesOn = "; the same command goes on from there, and changes nothing of what is done"

// patient are the commands that change many models, or what many have, and wait for a Redis that stops answering: what their error ends with if it
// stays away. Empty: they say by themselves how to go on.
var patient = map[string]string{
	"refreshd model put": goesOn, "refreshd model import": goesOn, "refreshd model run": "", "refreshd model rm": "", "refreshd model enable": "",
	"refreshd model disable": "", "refreshd failures run": "", "refreshd apply": goesOn, "refreshd level": goesOn, "refreshd hold": "",
	"refreshd policy put": goesOn, "refreshd policy rm": goesOn, "refreshd calendar put": goesOn, "refreshd calendar rm": goesOn,
}

// tellPatience says in the help of these commands that they wait.
func tellPatience(of *cobra.Command) {
	if _, is := patient[of.CommandPath()]; is {
		of.Long = cmp.Or(of.Long, of.Short+".") + `

A Redis that stops answering is asked again for two minutes, and nothing is done twice. After that the command says how
much is done, and how to go on. One that does not answer at the beginning is told at once.`
	}
	for _, command := range of.Commands() {
		tellPatience(command)
	}
}

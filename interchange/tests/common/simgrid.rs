//! SimGrid's replay of what an export wrote.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What `smpirun` prints of the replay of `actions` in a directory; `None` where it is not installed.
pub(crate) fn replayed(directory: &Path, ranks: u32) -> Option<String> {
    if !skipping::installed("smpirun") {
        return None;
    }
    let file = |name: &str, content: &str| fs::write(directory.join(name), content).unwrap();
    file("list", "actions\n");
    file("hosts", &(0..ranks).map(|rank| format!("h{rank}\n")).collect::<String>());
    let last = ranks - 1;
    file(
        "platform.xml",
        &format!(
            "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\
             <zone id=\"w\" routing=\"Full\"><cluster id=\"c\" prefix=\"h\" suffix=\"\" radical=\"0-{last}\" speed=\"1Gf\" bw=\"1.25GBps\" lat=\"1us\"/></zone></platform>\n"
        ),
    );
    let run = Command::new("smpirun")
        .args([
            "-replay",
            "list",
            "-np",
            &ranks.to_string(),
            "-platform",
            "platform.xml",
            "-hostfile",
            "hosts",
        ])
        .current_dir(directory)
        .output()
        .unwrap();
    Some(String::from_utf8_lossy(&run.stderr).into_owned() + &String::from_utf8_lossy(&run.stdout))
}

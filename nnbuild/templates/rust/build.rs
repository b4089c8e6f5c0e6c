//! Compiles the C of csrc/ with the compiler that the environment names, and links it in.
use std::env;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};
use std::thread;

const SOURCES: &[&str] = &[@SOURCES@];
/// The processors with the instructions used by the C; none means all.
const MACHINES: &[&str] = &[@MACHINES@];
const FLAGS: &[&str] = &["-std=c99", "-O2", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections"];

/// For each known target: the prefix of its name, the usual compiler, and the compiler's option for the processor.
const KNOWN: &[(&str, &str, &[&str])] = &[
    ("thumbv6m-", "arm-none-eabi-gcc", &["-mthumb", "-mcpu=cortex-m0"]),
    ("thumbv7m-", "arm-none-eabi-gcc", &["-mthumb", "-mcpu=cortex-m3"]),
    (
        "thumbv7em-none-eabihf",
        "arm-none-eabi-gcc",
        &["-mthumb", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"],
    ),
    ("thumbv7em-none-eabi", "arm-none-eabi-gcc", &["-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=soft"]),
    ("thumbv8m.main-none-eabihf", "arm-none-eabi-gcc", &["-mthumb", "-mcpu=cortex-m33", "-mfloat-abi=hard"]),
    ("thumbv8m.main-none-eabi", "arm-none-eabi-gcc", &["-mthumb", "-mcpu=cortex-m33", "-mfloat-abi=soft"]),
    ("riscv32imac-", "riscv64-unknown-elf-gcc", &["-march=rv32imac", "-misa-spec=2.2", "-mabi=ilp32"]),
    ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc", &[]),
];

fn main() {
    let target = var("TARGET").expect("cargo says the target");
    let folder = PathBuf::from(var("OUT_DIR").expect("cargo says where to write"));
    let csrc = PathBuf::from(var("CARGO_MANIFEST_DIR").expect("cargo says where the crate lies")).join("csrc");
    println!("cargo:rerun-if-changed={}", csrc.display());
    let machine = var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if !MACHINES.is_empty() && !MACHINES.contains(&machine.as_str()) {
        fail(&format!(
            "it was printed with the instructions of {}, which {target} has not. Print it again, with --isa c99 or --board",
            MACHINES[0]
        ));
    }
    let (compiler, archiver) = tools(&target);
    let mut flags: Vec<String> = FLAGS.iter().map(|flag| flag.to_string()).collect();
    if let Some((_, _, known)) = known(&target) {
        flags.extend(known.iter().map(|flag| flag.to_string()));
    }
    if target.contains("-none") {
        flags.push("-ffreestanding".to_string());
    } else {
        flags.push("-fPIC".to_string());
    }
    for name in ["CFLAGS", "TARGET_CFLAGS"] {
        flags.extend(tool(name).unwrap_or_default());
    }
    let objects = compile(&compiler, &flags, &csrc, &folder);
    let library = folder.join("lib@PREFIX@.a");
    let _ = std::fs::remove_file(&library); // archives are only added to, so an old one may contain stale members
    run(command(&archiver).arg("rcs").arg(&library).args(&objects), "AR");
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static=@PREFIX@");
    println!("cargo:include={}", csrc.display());
    if var("CARGO_FEATURE_ONLY_LIBC").is_some() && target.ends_with("-linux-gnu") {
        link_unwinder(&compiler, &folder.join("only-libc"));
    }
}

/// Rust's standard library links libgcc_s by name. This folder is searched first, and contains under that name a linker
/// script that takes the same functions from the compiler's archive.
fn link_unwinder(compiler: &[String], folder: &Path) {
    let asked = command(compiler).arg("-print-file-name=libgcc_eh.a").output();
    let archive = asked.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    if archive.is_ok_and(|path| path.is_absolute() && path.is_file()) {
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh -lgcc -lc)\n"));
        if written.is_ok() {
            println!("cargo:rustc-link-search=native={}", folder.display());
        }
    }
}

/// One compiler a processor, side by side.
fn compile(compiler: &[String], flags: &[String], csrc: &Path, folder: &Path) -> Vec<PathBuf> {
    let jobs = var("NUM_JOBS").and_then(|text| text.parse().ok()).unwrap_or(1).max(1);
    let mut objects = Vec::new();
    for group in SOURCES.chunks(jobs) {
        let started: Vec<_> = group
            .iter()
            .map(|source| {
                let object = folder.join(source).with_extension("o");
                objects.push(object.clone());
                let mut job = command(compiler);
                job.args(flags).arg("-I").arg(csrc).arg("-c").arg(csrc.join(source)).arg("-o").arg(object);
                thread::spawn(move || run(&mut job, "CC"))
            })
            .collect();
        for job in started {
            job.join().expect("a compiler was waited for");
        }
    }
    objects
}

fn tools(target: &str) -> (Vec<String>, Vec<String>) {
    let usual = known(target).map(|(_, name, _)| *name).unwrap_or("cc");
    let compiler = named("CC", target).unwrap_or_else(|| vec![usual.to_string()]);
    let archiver = named("AR", target).unwrap_or_else(|| {
        // arm-none-eabi-ar is next to arm-none-eabi-gcc.
        let beside = compiler[0].strip_suffix("-gcc").map(|start| format!("{start}-ar"));
        vec![beside.unwrap_or_else(|| "ar".to_string())]
    });
    (compiler, archiver)
}

/// A tool's name from the environment, first for this target.
fn named(tool_name: &str, target: &str) -> Option<Vec<String>> {
    let cross = var("HOST").as_deref() != Some(target);
    let side = if cross { "TARGET" } else { "HOST" };
    tool(&format!("{tool_name}_{target}"))
        .or_else(|| tool(&format!("{tool_name}_{}", target.replace(['-', '.'], "_"))))
        .or_else(|| tool(&format!("{side}_{tool_name}")))
        .or_else(|| tool(tool_name))
}

/// The words of a variable; one word if it is a program's path with blanks.
fn tool(name: &str) -> Option<Vec<String>> {
    println!("cargo:rerun-if-env-changed={name}");
    let text = var(name)?;
    if Path::new(&text).is_file() {
        return Some(vec![text]);
    }
    let words: Vec<String> = text.split_whitespace().map(str::to_string).collect();
    (!words.is_empty()).then_some(words)
}

fn known(target: &str) -> Option<&'static (&'static str, &'static str, &'static [&'static str])> {
    KNOWN.iter().find(|(start, _, _)| target.starts_with(start))
}

fn var(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn run(command: &mut Command, tool: &str) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{command:?} ended with {status}")),
        Err(error) => fail(&format!(
            "{:?} cannot be started ({error}). Install it, or name another one with {tool} or TARGET_{tool}",
            command.get_program()
        )),
    }
}

fn fail(cause: &str) -> ! {
    eprintln!("nnbuild: @PREFIX@: {cause}");
    exit(1)
}
